"""Which keys the full snapshots of a batch delivered, as rows or as records that were refused."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.contracts.job.findings import UnreadableKeys
from include.contracts.spec.table_spec import SilverSpec
from include.control.log.batch import Intent
from spark_jobs.layers.silver.source import SilverSource
from spark_jobs.transforms.refusals import is_quarantined
from spark_jobs.transforms.silver.snapshots import has_key, place_of

_AT = "_interval_start"


@dataclass(frozen=True)
class SnapshotKeys:
    """The keys in the full snapshots of a batch.

    Attributes:
        starts: start of the interval of each snapshot, oldest first.
        delivered: the keys with their `_interval_start`, those of refused records included.
        unreadable: the snapshots with refused records of which nobody can tell the key: they delete nothing.
    """

    starts: tuple[datetime, ...]
    delivered: DataFrame
    unreadable: tuple[UnreadableKeys, ...]

    @property
    def cannot_tell(self) -> set[datetime]:
        """The snapshots that delete nothing."""
        return {one.interval_start for one in self.unreadable}


def snapshot_keys(
    session: SparkSession,
    spec: SilverSpec,
    source: SilverSource,
    judged: DataFrame,
    quarantined_rows: int,
    intent: Intent,
) -> SnapshotKeys:
    """The keys in the snapshots of a batch.

    Args:
        session: the batch's own.
        spec: the silver table.
        source: its bronze table.
        judged: the judged rows of the batch.
        quarantined_rows: how many of them were refused.
        intent: the batch.
    """
    newest = intent.sources.snapshot_at
    starts = source.snapshots(intent.sources) if spec.keeps_history else (newest,) if newest else ()
    rows = judged.where(place_of(starts).isNotNull())
    delivered, refused = (frame.select(*spec.keys, _AT) for frame in (rows, rows.where(is_quarantined())))
    if (below := source.refused_below(session, intent, starts)) is not None:
        delivered, refused = delivered.union(below), refused.union(below)
    if not spec.keeps_history and (replayed := source.delivered_by_replays(session, intent)) is not None:
        delivered = delivered.union(replayed.withColumn(_AT, F.lit(newest).cast("timestamp")))
    without_key = refused.where(~has_key(spec.keys)).groupBy(place_of(starts).alias("place")).count()
    lacking = without_key.collect() if quarantined_rows or below is not None else []
    unreadable = (UnreadableKeys(interval_start=starts[row["place"]], records=row["count"]) for row in lacking)
    return SnapshotKeys(starts, delivered, tuple(sorted(unreadable, key=lambda one: one.interval_start)))
