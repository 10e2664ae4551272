"""Schema drift: records with values that fit no declared column, where a spec does not want them rescued."""

from __future__ import annotations

import re
from collections.abc import Collection

from pyspark.sql import Column
from pyspark.sql import functions as F

from include.contracts.spec.values import NAME
from spark_jobs.transforms.records import RESCUED

_MARK = "schema drift in "
_TOLD = re.compile(rf"{_MARK}(.+?): (\{{.*\}})")


def refused_drift(source: Column) -> Column:
    """`_rescued` of a table that takes no drift: null, or an error that fails the write and names the first record.

    Args:
        source: where a record came from.
    """
    return F.when(F.col(RESCUED).isNotNull(), _refusal(source))


def refused_fields(source: Column, known: Collection[str]) -> Column:
    """`_rescued` of a table that takes on new fields as columns: as it is, or an error at the first record with one.

    Args:
        source: where a record came from.
        known: the names that are no new fields.
    """
    return F.when(F.size(new_fields(known)) > 0, _refusal(source)).otherwise(F.col(RESCUED))


def new_fields(known: Collection[str]) -> Column:
    """The names in `_rescued` that could be columns, and are none of `known`; null for a record without any."""
    return F.filter(F.json_object_keys(RESCUED), lambda name: name.rlike(f"^{NAME}$") & ~name.isin(*known))


def _refusal(source: Column) -> Column:
    return F.raise_error(F.concat(F.lit(_MARK), source, F.lit(": "), F.col(RESCUED))).cast("string")


def drift_of(error: BaseException) -> tuple[str, str] | None:
    """(the source, its values that do not fit, as JSON) where a write failed because of drift.

    >>> drift_of(RuntimeError('[USER_RAISED_EXCEPTION] schema drift in orders/a.json: {"colour":"red"} SQLSTATE'))
    ('orders/a.json', '{"colour":"red"}')
    """
    found = _TOLD.search(str(error))
    return (found[1], found[2]) if found else None
