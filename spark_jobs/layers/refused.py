"""Which rows of a batch were refused, by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.contracts.expectation import Action
from include.contracts.findings import MAX_SAMPLES, RefusedRows, by_reason
from include.contracts.lake_path import LakePath
from include.control.batch import Winner
from include.control.stored_tables import open_table
from spark_jobs.transforms.judgement import dropped, reasons

Dropped = tuple[str, str, int]
"""(source, `rule: reason`, rows)."""


def quarantined_by_reason(quarantine: LakePath, winner: Winner) -> tuple[RefusedRows, ...]:
    """The rows that a batch has put into quarantine; a row with two reasons counts for both. No Spark."""
    mine = [("_batch_token", "=", winner.token)]
    rows = open_table(quarantine).to_pyarrow_table(columns=["row_id", "reasons"], filters=mine)
    reasons_of = rows["reasons"].combine_chunks()
    ids = rows["row_id"].combine_chunks().take(pc.list_parent_indices(reasons_of))
    flat = pa.table({"reason": pc.list_flatten(reasons_of), "id": ids})
    counts = flat.group_by("reason").aggregate([("id", "count")]).to_pylist()
    return by_reason(
        RefusedRows(
            reason=count["reason"],
            action=Action.QUARANTINE,
            rows=count["id_count"],
            samples=tuple(flat.filter(pc.field("reason") == count["reason"])["id"].slice(0, MAX_SAMPLES).to_pylist()),
        )
        for count in counts
    )


def dropped_rows(judged: DataFrame, source: Column) -> list[Dropped]:
    """The rows that a rule leaves out, of each source and reason, in one Spark job.

    Of a row that several rules leave out the first one counts, so that the rows add up.
    """
    left_out = judged.where(dropped()).groupBy(source.alias("source"), F.get(reasons(), F.lit(0)).alias("reason"))
    return [(row["source"], row["reason"], row["count"]) for row in left_out.count().collect()]


def dropped_by_reason(rows: Iterable[Dropped]) -> tuple[RefusedRows, ...]:
    """The same, of all sources together."""
    return by_reason(
        RefusedRows(reason=reason, action=Action.DROP, rows=count, samples=(source,)) for source, reason, count in rows
    )


def dropped_of_sources(rows: Iterable[Dropped]) -> Counter[str]:
    """source -> rows that were left out."""
    found = Counter[str]()
    for source, _, count in rows:
        found[source] += count
    return found
