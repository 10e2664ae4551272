"""Count the refused rows of a batch by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.contracts.job.findings import MAX_SAMPLES, RefusedRows, merge_by_reason, without_value
from include.contracts.lake_path import LakePath
from include.contracts.spec.expectation import Action
from include.control.log.batch import Winner
from include.control.log.stored_tables import open_table
from include.control.log.table_queries import query, text_literals
from spark_jobs.transforms.refusals import is_dropped, reasons

DroppedRows = tuple[str, str, int]
"""The rows that a rule dropped: (source, `rule: reason`, number of rows)."""


def quarantined_by_reason(quarantine: LakePath, winner: Winner) -> tuple[RefusedRows, ...]:
    """Return the rows that a batch has put into quarantine; a row with two reasons counts for both. No Spark."""
    sql = f"""
        SELECT reason, count(*) AS rows, array_slice(array_agg(row_id ORDER BY row_id), 1, {MAX_SAMPLES}) AS samples
        FROM (SELECT unnest(reasons) AS reason, row_id FROM stored WHERE _batch_token = {text_literals([winner.token])})
        GROUP BY reason
    """
    return merge_by_reason(
        RefusedRows(reason=without_value(reason), action=Action.QUARANTINE, rows=rows, samples=tuple(samples))
        for reason, rows, samples in (row.values() for row in query(open_table(quarantine), sql))
    )


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
