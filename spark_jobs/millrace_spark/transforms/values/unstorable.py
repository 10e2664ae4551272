"""Values that a table would not give back: texts that Delta stores as null in a partition column, far dates, bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millrace.contracts.job.findings import INVALID_VALUE
from millrace.contracts.restricted import RESTRICTED, RestrictedColumns
from millrace.contracts.spec.nested_type import is_nested
from millrace.errors import BadInputError
from millrace_spark.transforms.refusals import refusal_when
from millrace_spark.transforms.values.exact_values import can_be_stored, may_not_be_stored

_NULL_TEXTS = ("", "__HIVE_DEFAULT_PARTITION__")
"""The texts that Delta stores as null in a partition column."""

_ERROR_PREFIX = "no table gives back "
_ERROR = re.compile(rf"{_ERROR_PREFIX}(\w+) = '(.*?)', (a|no) ", re.DOTALL)
_PARTITION, _VALUE = "a partition value", "no date of the years 1 to 9999, or no UTF-8"


def refused_partition_texts(columns: Iterable[str]) -> list[Column]:
    """Return the refusals of a row whose text in one of these partition columns would become null."""
    rule = "expect_column_values_to_not_be_null"
    return [
        refusal_when(F.col(name) == text, rule, f"{name} is {text!r}, which Delta stores as null in a partition column")
        for name in columns
        for text in _NULL_TEXTS
    ]


def refused_values(kinds: Mapping[str, str]) -> list[Column]:
    """Return the refusals of a row with a value, of one of these columns with their types, that cannot be stored."""
    reason = f"is no value that every reader can show: {_VALUE}"
    return [
        refusal_when(~can_be_stored(F.col(name), kind), INVALID_VALUE, f"{name} {reason}")
        for name, kind in kinds.items()
        if may_not_be_stored(kind)
    ]


def require_storable(rows: DataFrame, partitioned_by: Sequence[str], restricted: RestrictedColumns) -> DataFrame:
    """Return the rows, of which a write fails where a value cannot be stored as it is.

    The error shows no value of a restricted column, unless it is a text that Delta stores as null.
    """
    stored = dict[str, Column]()
    for name, kind in rows.dtypes:
        value = F.col(name)
        if may_not_be_stored(kind):
            shown = F.to_json(value) if is_nested(kind) else value.cast("string")
            error = _error(name, F.lit(RESTRICTED) if name in restricted else shown, kind, _VALUE)
            stored[name] = F.when(can_be_stored(value, kind), value).otherwise(error)
        if kind == "string" and name in partitioned_by:
            is_null_text = value.isin(*_NULL_TEXTS)
            stored[name] = F.when(is_null_text, _error(name, value, kind, _PARTITION)).otherwise(stored[name])
    return rows.withColumns(stored) if stored else rows


def unstorable_error(error: BaseException, table: str) -> BadInputError | None:
    """Return the error to report of a write that `require_storable` failed; None for another error.

    >>> text = "no table gives back day = '+20089-01-01', no date of the years 1 to 9999, or no UTF-8 SQLSTATE"
    >>> print(unstorable_error(RuntimeError(text), "gold.a"))
    gold.a: day = '+20089-01-01' is no value that every reader can show: no date of the years 1 to 9999, or no UTF-8
    Correct what the spec states for day, or the rows of its sources.
    >>> text = "no table gives back city = '', a partition value SQLSTATE"
    >>> print(unstorable_error(RuntimeError(text), "gold.a"))
    gold.a: Delta stores city = '' as null, because city is a partition column: it would be another row
    Write nullif(city, '') where the spec states city, or leave city out of `partitioned_by`.
    """
    if not (match := _ERROR.search(str(error))):
        return None
    name, value, kind = match.groups()
    if kind == "a":
        return BadInputError(
            f"{table}: Delta stores {name} = '{value}' as null, because {name} is a partition column: it would be "
            "another row",
            f"Write nullif({name}, '{value}') where the spec states {name}, or leave {name} out of `partitioned_by`.",
        )
    return BadInputError(
        f"{table}: {name} = '{value}' is no value that every reader can show: {_VALUE}",
        f"Correct what the spec states for {name}, or the rows of its sources.",
    )


def _error(name: str, shown: Column, kind: str, cause: str) -> Column:
    text = F.concat(F.lit(f"{_ERROR_PREFIX}{name} = '"), F.substring(shown, 1, 100), F.lit(f"', {cause}"))
    return F.raise_error(text).cast(kind)
