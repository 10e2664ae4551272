"""Which keys of its table a silver batch deletes since the source holds them no more, and why."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.contracts.job.findings import AbsentKeys
from include.contracts.spec.table_spec import SilverSpec
from include.contracts.time_format import MINUTE
from include.control.ledger.measures import table_rows
from include.control.log.batch import Intent
from include.paths import LakehousePaths
from spark_jobs.layers.silver.snapshot_keys import SnapshotKeys
from spark_jobs.layers.silver.source import SilverSource
from spark_jobs.transforms.silver.changes import ABSENT
from spark_jobs.transforms.silver.snapshots import DUE_IN, IS_DELIVERED
from spark_jobs.transforms.silver.ties import key_in_words

_SAMPLES = 3


def absent_from_snapshots(
    due: DataFrame, keys: SnapshotKeys, spec: SilverSpec, source: SilverSource, intent: Intent
) -> Iterator[AbsentKeys]:
    """The keys that each new snapshot of a table with history lacks, of those that the one before it had."""
    new = source.new_snapshots(intent.sources) | ({intent.interval_start} if intent.sources.reprocess else set())
    places = [place for place, start in enumerate(keys.starts) if start in new]
    counts = F.count(F.lit(1)).alias("due"), F.count(F.when(~F.col(IS_DELIVERED), 1)).alias("absent")
    for row in due.where(F.col(DUE_IN).isin(places)).groupBy(DUE_IN).agg(*counts).sort(DUE_IN).collect():
        start = keys.starts[row[DUE_IN]]
        if row["absent"]:
            gone = due.where((F.col(DUE_IN) == row[DUE_IN]) & ~F.col(IS_DELIVERED))
            yield AbsentKeys(
                keys=row["absent"],
                of_keys=row["due"],
                why=f"the full snapshot from {start:{MINUTE}} lacks them",
                samples=_samples(gone, spec),
                interval_start=start,
            )


def absent_from_table(
    found: DataFrame, target: DataFrame, version: int, spec: SilverSpec, why: str, intent: Intent, paths: LakehousePaths
) -> Iterator[AbsentKeys]:
    """The keys of a table of which a batch leaves nothing, though no event deletes them.

    Args:
        found: the rows of the outcome with `_action`, at least one of them absent.
        target: the rows of the table.
        version: the version that these are of.
        spec: the table.
        why: what made the keys go.
        intent: the batch.
        paths: the lakehouse.
    """
    gone, of_keys = found.where(F.col("_action") == ABSENT), table_rows(paths.table(spec.table), version)
    if spec.keeps_history:
        keys = list(spec.keys)
        gone = gone.join(found.where(F.col("_action") != ABSENT), keys, "left_anti").select(*keys).distinct()
        of_keys = target.select(*keys).distinct().count()
    if number := gone.count():
        at = intent.sources.snapshot_at if spec.snapshot else None
        yield AbsentKeys(keys=number, of_keys=of_keys, why=why, samples=_samples(gone, spec), interval_start=at)


def why_absent(spec: SilverSpec, intent: Intent, replaced: tuple[str, ...], *, is_truncate: bool) -> str:
    """What makes keys go, of a table whose batch deletes some that no event names."""
    if spec.snapshot:
        return f"the full snapshot from {intent.sources.snapshot_at:{MINUTE}} lacks them"
    if is_truncate:
        return "a truncate takes them away"
    more = f" (and {len(replaced) - 1} more)" if len(replaced) > 1 else ""
    return f"{replaced[0]}{more} was delivered again without them" if replaced else "no event of theirs is left"


def _samples(gone: DataFrame, spec: SilverSpec) -> tuple[str, ...]:
    return tuple(row["said"] for row in gone.select(key_in_words(spec.keys).alias("said")).limit(_SAMPLES).collect())
