"""Schema drift: fail a write at records with values that fit no declared column, where a spec does not rescue them."""

from __future__ import annotations

import re
from collections.abc import Collection

from pyspark.sql import Column
from pyspark.sql import functions as F

from millrace.contracts.restricted import RESTRICTED
from millrace_spark.transforms.records import RESCUED

_ERROR_PREFIX = "schema drift in "
_ERROR = re.compile(rf"{_ERROR_PREFIX}(.+?): (\{{.*\}})")

_FIELD = r"(?s)^(`(?:[^`]|``)+`|[^.]+?)(?:\[\d{1,9}\])*(?:\.|$)"
"""The name of a field in the path of its value, as `path_text` writes it."""


NEW_NAME = r"[a-z][a-z0-9_]{0,99}"
"""The fields that may become columns: a source may write values as field names, of any length."""


def new_fields(known_fields: Collection[str]) -> Column:
    """Return the names in `_rescued` that could be columns and are not known; null where `_rescued` is null."""
    return F.filter(F.json_object_keys(RESCUED), lambda name: name.rlike(f"^{NEW_NAME}$") & ~name.isin(*known_fields))


def drift_error(source: Column, *, shows_values: bool) -> Column:
    """Return an error, as text, that fails the write and names `_rescued` and `source`, the place of the record.

    Without values, it has the names of the fields; those of their parts may be keys of maps.
    """
    names = F.array_distinct(F.transform(F.json_object_keys(RESCUED), lambda path: F.regexp_extract(path, _FIELD, 1)))
    hidden = F.to_json(F.map_from_arrays(names, F.transform(names, lambda _: F.lit(RESTRICTED))))
    shown = F.col(RESCUED) if shows_values else hidden
    return F.raise_error(F.concat(F.lit(_ERROR_PREFIX), source, F.lit(": "), shown)).cast("string")


def drift_of(error: BaseException) -> tuple[str, str] | None:
    """Return (source, JSON of the values that do not fit) of a write that drift failed; None for another error.

    >>> drift_of(RuntimeError('[USER_RAISED_EXCEPTION] schema drift in orders/a.json: {"colour":"red"} SQLSTATE'))
    ('orders/a.json', '{"colour":"red"}')
    """
    match = _ERROR.search(str(error))
    return (match[1], match[2]) if match else None
