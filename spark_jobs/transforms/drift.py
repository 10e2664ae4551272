"""Schema drift: fail a write at records with values that fit no declared column, where a spec does not rescue them."""

from __future__ import annotations

import re
from collections.abc import Collection

from pyspark.sql import Column
from pyspark.sql import functions as F

from include.contracts.spec.values import NAME
from spark_jobs.transforms.records import RESCUED

_ERROR_PREFIX = "schema drift in "
_ERROR = re.compile(rf"{_ERROR_PREFIX}(.+?): (\{{.*\}})")


def refuse_drift(source: Column) -> Column:
    """Return `_rescued` for a table that accepts no drift: null, or an error that fails the write and names a record.

    Args:
        source: the place that a record came from.
    """
    return F.when(F.col(RESCUED).isNotNull(), _drift_error(source))


def refuse_new_fields(source: Column, known_fields: Collection[str]) -> Column:
    """Return `_rescued` for a table that adds new fields as columns: unchanged, or an error where there is one.

    Args:
        source: the place that a record came from.
        known_fields: the names of fields that are not new.
    """
    return F.when(F.size(new_fields(known_fields)) > 0, _drift_error(source)).otherwise(F.col(RESCUED))


def new_fields(known_fields: Collection[str]) -> Column:
    """Return the names in `_rescued` that could be columns and are not known; null where `_rescued` is null."""
    return F.filter(F.json_object_keys(RESCUED), lambda name: name.rlike(f"^{NAME}$") & ~name.isin(*known_fields))


def _drift_error(source: Column) -> Column:
    return F.raise_error(F.concat(F.lit(_ERROR_PREFIX), source, F.lit(": "), F.col(RESCUED))).cast("string")


def drift_of(error: BaseException) -> tuple[str, str] | None:
    """Return (source, JSON of the values that do not fit) of a write that drift failed; None for another error.

    >>> drift_of(RuntimeError('[USER_RAISED_EXCEPTION] schema drift in orders/a.json: {"colour":"red"} SQLSTATE'))
    ('orders/a.json', '{"colour":"red"}')
    """
    match = _ERROR.search(str(error))
    return (match[1], match[2]) if match else None
