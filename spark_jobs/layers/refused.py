"""Which rows of a batch were refused, by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.contracts.job.findings import MAX_SAMPLES, RefusedRows, merge_by_reason
from include.contracts.job.refusal_reasons import without_value
from include.contracts.lake_path import LakePath
from include.contracts.spec.expectation import Action
from include.control.log.batch import Winner
from include.control.log.stored_tables import open_table
from include.control.log.table_queries import query, texts
from spark_jobs.transforms.refusals import is_dropped, reasons

Dropped = tuple[str, str, int]
"""(source, `rule: reason`, rows)."""


def quarantined_by_reason(quarantine: LakePath, winner: Winner) -> tuple[RefusedRows, ...]:
    """The rows that a batch has put into quarantine; a row with two reasons counts for both. No Spark."""
    sql = f"""
        SELECT reason, count(*) AS rows, array_slice(array_agg(row_id ORDER BY row_id), 1, {MAX_SAMPLES}) AS samples
        FROM (SELECT unnest(reasons) AS reason, row_id FROM stored WHERE _batch_token = {texts([winner.token])})
        GROUP BY reason
    """
    return merge_by_reason(
        RefusedRows(reason=without_value(reason), action=Action.QUARANTINE, rows=rows, samples=tuple(samples))
        for reason, rows, samples in (found.values() for found in query(open_table(quarantine), sql))
    )


def dropped_rows(judged: DataFrame, source: Column) -> list[Dropped]:
    """The rows that a rule leaves out, of each source and reason, in one Spark job.

    Of a row that several rules leave out the first one counts, so that the rows add up.
    """
    left_out = judged.where(is_dropped()).groupBy(source.alias("source"), F.get(reasons(), F.lit(0)).alias("reason"))
    return [(row["source"], row["reason"], row["count"]) for row in left_out.count().collect()]


def dropped_by_reason(rows: Iterable[Dropped]) -> tuple[RefusedRows, ...]:
    """The same, of all sources together."""
    return merge_by_reason(
        RefusedRows(reason=reason, action=Action.DROP, rows=count, samples=(source,)) for source, reason, count in rows
    )


def dropped_of_sources(rows: Iterable[Dropped]) -> Counter[str]:
    """source -> rows that were left out."""
    found = Counter[str]()
    for source, _, count in rows:
        found[source] += count
    return found
