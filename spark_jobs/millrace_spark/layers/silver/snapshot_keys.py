"""The keys in the full snapshots of a batch, also those of refused records."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.job.findings import UnreadableKeys
from millrace.contracts.spec.table_spec import SilverSpec
from millrace.control.log.batch import Intent
from millrace_spark.layers.silver.source import SilverSource
from millrace_spark.transforms.refusals import is_quarantined
from millrace_spark.transforms.silver.snapshots import has_key, place_of

_AT = "_interval_start"


@dataclass(frozen=True)
class SnapshotKeys:
    """The keys in the full snapshots of a batch.

    Attributes:
        starts: start of the interval of each snapshot, oldest first.
        delivered: the keys with their `_interval_start`, also those of refused records.
        unreadable: the snapshots with refused records whose keys nobody can read: these snapshots delete nothing.
    """

    starts: tuple[datetime, ...]
    delivered: DataFrame
    unreadable: tuple[UnreadableKeys, ...]


def snapshot_keys(
    session: SparkSession, spec: SilverSpec, source: SilverSource, rows: DataFrame, quarantined: int, intent: Intent
) -> SnapshotKeys:
    """Return the keys in the snapshots of a batch.

    Args:
        session: the batch's own.
        spec: the silver table.
        source: its bronze table.
        rows: the rows of the batch with their refusals.
        quarantined: how many of them were refused.
        intent: the batch.
    """
    newest = intent.sources.snapshot_at
    starts = source.snapshots(intent.sources) if spec.keeps_history else (newest,) if newest else ()
    of_snapshots = rows.where(place_of(starts).isNotNull())
    frames = (of_snapshots, of_snapshots.where(is_quarantined()))
    delivered, refused = (frame.select(*spec.keys, _AT) for frame in frames)
    if (refused_by_source := source.keys_refused_by_source(session, intent, starts)) is not None:
        delivered, refused = delivered.union(refused_by_source), refused.union(refused_by_source)
    if not spec.keeps_history and (replayed := source.keys_of_replays(session, intent)) is not None:
        delivered = delivered.union(replayed.withColumn(_AT, F.lit(newest).cast("timestamp")))
    without_key = refused.where(~has_key(spec.keys)).groupBy(place_of(starts).alias("place")).count()
    counts = without_key.collect() if quarantined or refused_by_source is not None else []
    unreadable = (UnreadableKeys(interval_start=starts[row["place"]], records=row["count"]) for row in counts)
    return SnapshotKeys(starts, delivered, tuple(sorted(unreadable, key=lambda keys: keys.interval_start)))
