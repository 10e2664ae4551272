"""Report a column that a source's spec declares, but its table does not have yet: the source's next run adds it."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

from include.contracts.spec.table_spec import BronzeSpec, GoldSpec, SilverSpec
from include.errors import NotReadyError
from spark_jobs.runtime.context import JobContext

_UNRESOLVED = re.compile(r"with name ((?:`[^`]+`\.)*`(?P<column>[^`]+)`) cannot be resolved")


def missing_column_error(error: BaseException, context: JobContext) -> NotReadyError | None:
    """Return the error to report instead of `error` if Spark lacks such a column; else None."""
    if not isinstance(error, PySparkException) or not (match := _UNRESOLVED.search(str(error))):
        return None
    table, column = context.spec.table, match["column"]
    for source in context.spec.source_tables:
        if column in _declared(context.catalog.spec(source)):
            way_out = f"Run {source} first: its next run adds the column, and its gate must pass it."
            return NotReadyError(f"{table}: {source} has no column {column} yet in the version that is read", way_out)
    return None


def _declared(spec: BronzeSpec | SilverSpec | GoldSpec) -> tuple[str, ...]:
    if isinstance(spec, GoldSpec):
        return (*spec.group_by, *spec.measures)
    return tuple(spec.columns) if isinstance(spec, BronzeSpec) else spec.stored_columns
