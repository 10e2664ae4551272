"""What a silver batch reads of its bronze table: what is new, and what has to be worked out again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache, reduce
from operator import and_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from include.contracts.job.quarantine_request import RowFilter
from include.contracts.row_status import PENDING, RowStatus
from include.contracts.spec.table_spec import SilverSpec
from include.control.log.batch import BatchSources, Intent
from include.control.log.delta_log import latest_version
from include.control.log.stored_tables import is_table
from include.control.planning.source_ranges import require_same_sources
from include.control.quarantine.events import ReceivedRow, Said
from include.control.quarantine.rows import quarantined_rows
from spark_jobs.delta_io.landing_reads import SOURCE_FILE
from spark_jobs.delta_io.reads import read_appended, read_removed, read_version
from spark_jobs.layers.received_rows import received_frame
from spark_jobs.layers.silver.replays import SilverReplays
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.session import frozen
from spark_jobs.transforms.received import RECEIVED, as_received, is_received
from spark_jobs.transforms.refusals import is_quarantined
from spark_jobs.transforms.silver.retraction import with_recomputed_keys
from spark_jobs.transforms.silver.silver import key_values, silver_rows


class SilverSource:
    """The bronze table of a silver table.

    Attributes:
        replays: the quarantined rows that replays bring beside it.
    """

    def __init__(self, context: JobContext, spec: SilverSpec) -> None:
        self._context = context
        self._spec = spec
        self._path = context.paths.table(spec.source)
        self.replays = SilverReplays(context, spec)
        # Asked at every step of a batch; what became of certified versions does not change meanwhile.
        self._replaced_files = cache(context.records.ledger.replaced_files)
        self._intervals = cache(context.records.ledger.intervals)

    def replaced_files(self, sources: BatchSources) -> tuple[str, ...]:
        """The landing files whose rows were replaced in the versions that a batch reads."""
        after, upto = sources.ranges[self._spec.source]
        if after is None:
            return ()
        return self._replaced_files(self._spec.source, sources.source_ids[self._spec.source], after, upto)

    def retracted(self, session: SparkSession, intent: Intent, target_version: int) -> DataFrame | None:
        """The keys of rows that were taken out of the source; None when no row was, or a snapshot says all there is.

        Where the source has no changes of the range any more it may be any key that silver knows.
        """
        after, upto = intent.sources.ranges[self._spec.source]
        if after is None or self._spec.snapshot or not self.replaced_files(intent.sources):
            return None
        removed = read_removed(session, self._path, after, upto)
        if removed is None:
            keys = self._every_key(session, intent, target_version)
        else:
            keys = self._keys_of_removed(session, intent, removed)
        # A truncate has no key: it is not taken back, neither as a row of a file nor as a tombstone.
        return frozen(keys.where(reduce(and_, (F.col(key).isNotNull() for key in keys.columns))).distinct())

    def _keys_of_removed(self, session: SparkSession, intent: Intent, removed: DataFrame) -> DataFrame:
        keys = silver_rows(removed, self._spec).select(*self._spec.keys)
        of_files = F.col("_source").isin(*self.replaced_files(intent.sources))
        if (replayed := self.replays.taken(session, intent)) is not None:
            keys = keys.union(replayed.where(of_files).select(*self._spec.keys))
        return keys

    def _every_key(self, session: SparkSession, intent: Intent, target_version: int) -> DataFrame:
        """The keys of the target, of the tombstones, and of what replays have brought: deleted ones may be forgotten.

        Of the source's own rows none is missing: they are all read again.
        """
        paths, table = self._context.paths, self._spec.table
        keys = read_version(session, paths.table(table), target_version).select(*self._spec.keys)
        if (replayed := self.replays.taken(session, intent)) is not None:
            keys = keys.union(replayed.select(*self._spec.keys))
        tombstones = paths.tombstones(table, intent.table_id)
        if not is_table(tombstones):
            return keys
        deleted = read_version(session, tombstones, latest_version(tombstones))
        return keys.union(deleted.select(*self._spec.keys))

    def judged(self, session: SparkSession, intent: Intent, retracted: DataFrame | None) -> DataFrame:
        """The rows of a batch, typed and judged: what is new, and of retracted keys all that the source holds."""
        rows = self._tried_or_new(session, intent)
        if retracted is None:
            return rows
        held = self._all(session, intent)
        return with_recomputed_keys(rows.select(*held.columns), held, retracted, self._spec.keys)

    def snapshots(self, sources: BatchSources) -> tuple[datetime, ...]:
        """The intervals of the full snapshots that a batch puts in order, oldest first."""
        if sources.snapshots:
            return sources.snapshots
        table = self._spec.source
        all_of_them = self._intervals(table, sources.source_ids[table], sources.ranges[table][1])
        return tuple(start for start in all_of_them if start not in sources.waiting)

    def of_snapshots(self, session: SparkSession, intent: Intent) -> DataFrame:
        """The judged rows of these snapshots."""
        if intent.sources.snapshots:
            return self.judged(session, intent, None)
        return self._all(session, intent).where(~_of_intervals(intent.sources.waiting))

    def refused(self, session: SparkSession, intent: Intent) -> DataFrame:
        """The rows that a batch puts into quarantine, each with the bronze row that it was."""
        bronze = self._rows(session, intent)
        received = as_received(filter(is_received, bronze.columns)).alias(RECEIVED)
        return silver_rows(bronze, self._spec, received).where(is_quarantined())

    def delivered_by_replays(self, session: SparkSession, intent: Intent) -> DataFrame | None:
        """The keys that replays have brought to the snapshot that the batch reads; None for none."""
        taken = self.replays.taken(session, intent)
        if taken is None:
            return None
        of_snapshot = F.col("_interval_start") == F.lit(intent.sources.snapshot_at).cast("timestamp")
        return taken.where(of_snapshot).select(*self._spec.keys)

    def refused_below(self, session: SparkSession, intent: Intent, starts: Sequence[datetime]) -> DataFrame | None:
        """The keys of records of some snapshots that the source has refused, and of which nobody has decided yet.

        They are pinned: what somebody decides of them before the batch is counted changes nothing in it.

        Returns:
            The keys, null where they cannot be read, and `_interval_start`; None where no record was refused.
        """
        events = self._context.records.quarantine
        rows = events.pinned(intent.table, intent.token)
        if not rows and (rows := self._undecided(intent.sources, starts)):
            events.pin(intent.table, intent.table_id, intent.token, rows, Said("", "", intent.run_id))
        if not rows:
            return None
        received = received_frame(session, rows, self.replays.received_schema(session))
        return received.select(*key_values(self._spec), "_interval_start")

    def _undecided(self, sources: BatchSources, starts: Sequence[datetime]) -> list[ReceivedRow]:
        """Those records; one that a replay has brought to a later version than the batch reads is among them."""
        source, paths = self._spec.source, self._context.paths
        _, upto = sources.ranges[source]
        last = self._context.records.ledger.newest_number(source, sources.source_ids[source], upto)
        wanted = RowFilter(starts=tuple(starts), statuses=(*PENDING, RowStatus.REPLAYED))
        refused = [row for row in quarantined_rows(source, paths, wanted) if row.batch_seq <= last]
        return [row.to_try for row in refused if row.status is not RowStatus.REPLAYED or row.replayed_in > last]

    def new_snapshots(self, sources: BatchSources) -> set[datetime]:
        """The intervals of the snapshots that a batch reads for the first time, or anew since there is more of them."""
        if sources.snapshots or not self._spec.keeps_history:
            return {*sources.snapshots, *([sources.snapshot_at] if sources.snapshot_at else [])}
        source, (after, upto) = self._spec.source, sources.ranges[self._spec.source]
        batches = self._context.records.ledger.batches(
            source, sources.source_ids[source], -1 if after is None else after, upto
        )
        return {batch.intent.interval_start for batch in batches} | set(sources.released)

    def read_again(self, intent: Intent) -> tuple[datetime, ...]:
        """The intervals of which a batch reads every row that the source has, whatever was consumed."""
        sources = intent.sources
        if sources.replay:
            return ()
        if sources.snapshot_at:
            return tuple({sources.snapshot_at, *sources.released})
        return (intent.interval_start,) if sources.reprocess else ()

    def _rows(self, session: SparkSession, intent: Intent) -> DataFrame:
        """Bronze rows: what is new, and the intervals that are read again, as they are now; none that still waits."""
        rows, again = self._new_rows(session, intent.sources), self.read_again(intent)
        if not again:
            return rows
        others = rows.where(~_of_intervals({*again, *intent.sources.waiting}))
        return others.unionByName(self._held(session, intent.sources).where(_of_intervals(again)))

    def _tried_or_new(self, session: SparkSession, intent: Intent) -> DataFrame:
        if intent.sources.replay:
            return self.replays.judged(session, intent)
        require_same_sources(intent.sources, self._context.paths)
        return silver_rows(self._rows(session, intent), self._spec)

    def _all(self, session: SparkSession, intent: Intent) -> DataFrame:
        """All that the source holds, what replays have brought, and what this one tries."""
        require_same_sources(intent.sources, self._context.paths)
        bronze = self._held(session, intent.sources)
        held = silver_rows(bronze, self._spec)
        if (replayed := self.replays.taken(session, intent, still_in=bronze)) is not None:
            held = held.unionByName(replayed.select(*held.columns))
        if intent.sources.replay:
            held = held.unionByName(self.replays.judged(session, intent).select(*held.columns))
        return held

    def _new_rows(self, session: SparkSession, sources: BatchSources) -> DataFrame:
        """The rows that came, of a file that was replaced those it has now: it may have come several times."""
        after, upto = sources.ranges[self._spec.source]
        rows = read_appended(session, self._path, after, upto)
        replaced = self.replaced_files(sources)
        if not replaced:
            return rows
        of_replaced = F.col(SOURCE_FILE).isin(*replaced)
        return rows.where(~of_replaced).unionByName(self._held(session, sources).where(of_replaced))

    def _held(self, session: SparkSession, sources: BatchSources) -> DataFrame:
        return read_version(session, self._path, sources.ranges[self._spec.source][1])


def _of_intervals(starts: Iterable[datetime]) -> Column:
    """True for a row that came with one of some intervals."""
    return F.col("_interval_start").isin([F.lit(start).cast("timestamp") for start in starts])
