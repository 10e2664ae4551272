"""Count the dropped rows of a batch by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millrace.contracts.job.findings import RefusedRows, merge_by_reason
from millrace.contracts.spec.expectation import Action
from millrace_spark.transforms.refusals import is_dropped, reasons

DroppedRows = tuple[str, str, int]
"""The rows that a rule dropped: (source, `rule: reason`, number of rows)."""


def dropped_rows(checked: DataFrame, source: Column) -> list[DroppedRows]:
    """Count the dropped rows by source and reason, in one Spark job.

    A row that several rules drop counts for the first rule only, so that the counts add up.
    """
    groups = checked.where(is_dropped()).groupBy(source.alias("source"), F.get(reasons(), F.lit(0)).alias("reason"))
    return [(row["source"], row["reason"], row["count"]) for row in groups.count().collect()]


def dropped_by_reason(rows: Iterable[DroppedRows]) -> tuple[RefusedRows, ...]:
    """Return the dropped rows of all sources by reason; the samples are sources."""
    return merge_by_reason(
        RefusedRows(reason=reason, action=Action.DROP, rows=count, samples=(source,)) for source, reason, count in rows
    )


def dropped_by_source(rows: Iterable[DroppedRows]) -> Counter[str]:
    """Return source -> number of dropped rows."""
    counts = Counter[str]()
    for source, _, count in rows:
        counts[source] += count
    return counts
