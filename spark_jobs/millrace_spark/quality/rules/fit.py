"""Find out whether a rule fits its columns.

Under ANSI a comparison of text with numbers is a cast that fails at the first invalid row, and with it the whole batch:
so a rule that does not fit is reported before Spark runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from difflib import get_close_matches

from pyspark.sql.types import BooleanType, DataType, DateType, NumericType, StringType, StructType, TimestampType

from millrace.contracts.spec.expectation import Expectation
from millrace_spark.quality.rules.bounds import is_time, value_bound

NUMBERS, TEXT, TIMES, BOOLEANS = "numbers", "text", "dates", "booleans"

_ON_COLUMNS = ("expect_column_to_exist", "expect_table_columns_to_match_ordered_list")
"""The expectations that fail, instead of not being checked, if a column that they name is missing."""


def unfit_causes(schema: StructType, rule: Expectation) -> tuple[str, ...]:
    """Return why a rule cannot be evaluated on a frame of this schema, one line per cause; empty if it can."""
    if rule.name in _ON_COLUMNS:
        return ()
    columns = [rule.arguments[key] for key in ("column", "column_A", "column_B") if key in rule.arguments]
    columns += rule.arguments.get("column_list", ())
    missing = []
    for column in columns:
        if column not in schema.names:
            close = get_close_matches(column, schema.names, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(schema.names)}"
            missing.append(f"there is no column {column!r}; {hint}")
    if missing:
        return tuple(missing)
    kinds = {column: _kind(schema[column].dataType) for column in columns}
    return tuple(_misfits(rule, kinds))


def _misfits(rule: Expectation, kinds: Mapping[str, str]) -> Iterator[str]:
    """Yield what cannot be compared: columns of different kinds, and a column with values of another kind."""
    if "column_A" in rule.arguments and "value_pairs_set" not in rule.arguments and len(set(kinds.values())) > 1:
        yield " and ".join(f"{column} holds {kind}" for column, kind in kinds.items())
    if rule.name not in _COMPARED or not kinds:
        return
    keys, is_valid = _COMPARED[rule.name]
    column, kind = next(iter(kinds.items()))
    for given in map(rule.arguments.get, keys):
        for value in given if isinstance(given, list | tuple) else [given]:
            if value is not None and not is_valid(value, kind):
                yield f"{column} holds {kind}, which {value!r} cannot be compared with"


def _is_valid_bound(value: object, kind: str) -> bool:
    try:
        bound = value_bound(value)
    except ValueError:
        return False
    return kind == NUMBERS if isinstance(bound, float) else kind == TIMES


def _is_valid_value(value: object, kind: str) -> bool:
    if kind == BOOLEANS:
        return isinstance(value, bool)
    if kind == NUMBERS:
        return isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if kind == TIMES:
        return isinstance(value, date) or (isinstance(value, str) and is_time(value))
    return isinstance(value, str)


def _kind(of: DataType) -> str:
    if isinstance(of, NumericType):
        return NUMBERS
    if isinstance(of, DateType | TimestampType):
        return TIMES
    if isinstance(of, BooleanType):
        return BOOLEANS
    return TEXT if isinstance(of, StringType) else of.simpleString()


_COMPARED: dict[str, tuple[tuple[str, ...], Callable[[object, str], bool]]] = {
    "expect_column_values_to_be_between": (("min_value", "max_value"), _is_valid_bound),
    "expect_column_values_to_be_in_set": (("value_set",), _is_valid_value),
    "expect_column_values_to_not_be_in_set": (("value_set",), _is_valid_value),
    "expect_column_distinct_values_to_be_in_set": (("value_set",), _is_valid_value),
    "expect_column_distinct_values_to_contain_set": (("value_set",), _is_valid_value),
    "expect_column_distinct_values_to_equal_set": (("value_set",), _is_valid_value),
    "expect_column_most_common_value_to_be_in_set": (("value_set",), _is_valid_value),
}
"""Expectation -> the arguments that its column is compared with, and the check of their values."""
