"""Schema drift: records with values that fit no declared column, where a spec does not want them rescued."""

from __future__ import annotations

import re

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.transforms.records import RESCUED

_MARK = "schema drift in "
_TOLD = re.compile(rf"{_MARK}(.+?): (\{{.*\}})")


def refused_drift(source: Column) -> Column:
    """`_rescued` of a table that takes no drift: null, or an error that fails the write and names the first record.

    Args:
        source: where a record came from.
    """
    told = F.concat(F.lit(_MARK), source, F.lit(": "), F.col(RESCUED))
    return F.when(F.col(RESCUED).isNotNull(), F.raise_error(told).cast("string"))


def drift_of(error: BaseException) -> tuple[str, str] | None:
    """(the source, its values that do not fit, as JSON) where a write failed because of drift.

    >>> drift_of(RuntimeError('[USER_RAISED_EXCEPTION] schema drift in orders/a.json: {"colour":"red"} SQLSTATE'))
    ('orders/a.json', '{"colour":"red"}')
    """
    found = _TOLD.search(str(error))
    return (found[1], found[2]) if found else None
