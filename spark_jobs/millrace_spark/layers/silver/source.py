"""The rows that a silver batch reads from its bronze tables: new rows, and rows of keys that it computes again.

A row that an earlier batch has read is refused if and only if it was refused then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache, reduce
from operator import and_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.job.requests import RowFilter
from millrace.contracts.row_status import PENDING, RowStatus
from millrace.contracts.spec.expectation import Action
from millrace.contracts.spec.table_spec import SilverSpec
from millrace.control.changes.last_reads import last_reads
from millrace.control.changes.spec_changes import Effect, spec_changes
from millrace.control.ledger.spec_history import document_of
from millrace.control.log.batch import BatchSources, Intent
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import is_table
from millrace.control.planning.source_ranges import require_same_sources
from millrace.control.quarantine.events import Decision, ReceivedRow
from millrace.control.quarantine.rows import quarantined_rows
from millrace.control.quarantine.stored_rows import StoredRows
from millrace_spark.delta_io.reads import read_version
from millrace_spark.layers.received_rows import received_frame
from millrace_spark.layers.silver.references import References
from millrace_spark.layers.silver.replays import SilverReplays
from millrace_spark.layers.silver.source_table import SourceTable, of_intervals
from millrace_spark.protocol.secondary import belongs_to
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.session import freeze
from millrace_spark.transforms.received import RECEIVED, ROW_ID, as_received, is_received
from millrace_spark.transforms.refusals import is_dropped, is_quarantined
from millrace_spark.transforms.silver.partitions import is_own
from millrace_spark.transforms.silver.references import refuse_quarantined
from millrace_spark.transforms.silver.retraction import with_recomputed_keys
from millrace_spark.transforms.silver.silver import key_values, silver_rows
from millrace_spark.transforms.stamps import BATCH_TOKEN


class SilverSource:
    """The bronze tables of a silver table.

    Attributes:
        replays: the quarantined rows that replays add to them.
    """

    def __init__(self, context: JobContext, spec: SilverSpec) -> None:
        self._context = context
        self._spec = spec
        self._tables = [SourceTable(context, spec, table) for table in spec.source_tables]
        self._references = References(context, spec)
        self._earlier = EarlierRows(context, spec)
        self.replays = SilverReplays(context, spec)
        self._deleted: dict[str, Sequence[str]] = {}
        # Every step of a batch reads these; for certified versions they do not change in the meantime.
        self._intervals = cache(context.ops.ledger.intervals)

    def replaced_files(self, sources: BatchSources) -> tuple[str, ...]:
        """Return the landing files whose rows were replaced in the versions that a batch reads, as in `_source`."""
        return tuple(place for source in self._tables for place in source.replaced_places(sources))

    def restarted_places(self, sources: BatchSources) -> tuple[str, ...]:
        """Return how `_source` begins in the rows of the sources that a batch reads from their beginning."""
        return tuple(source.first_place for source in self._tables if sources.ranges[source.table][0] is None)

    @property
    def first_places(self) -> tuple[str, ...]:
        """How `_source` begins in all rows of each source."""
        return tuple(source.first_place for source in self._tables)

    def retracts_rows(self, sources: BatchSources) -> bool:
        """Whether rows that earlier batches may have read do not count any more, in any of the sources."""
        return any(source.has_replaced_rows(sources) for source in self._tables)

    def sources_with_deletions(self, sources: BatchSources) -> tuple[str, ...]:
        """Return the sources single rows of which were deleted in the versions that a batch reads."""
        return tuple(source.table for source in self._tables if source.has_deletions(sources))

    def erased_rows(self, sources: BatchSources) -> int | None:
        """Return how many rows erasures have deleted in the versions that a batch reads; None without an erasure."""
        erased = [rows for source in self._tables if (rows := source.erased_rows(sources)) is not None]
        return sum(erased) if erased else None

    def refused_and_deleted(self, session: SparkSession, intent: Intent) -> Sequence[str]:
        """Return the ids of quarantined rows that a source has deleted in the versions that a batch reads."""
        if intent.token not in self._deleted:
            self._deleted[intent.token] = self._find_refused_and_deleted(session, intent)
        return self._deleted[intent.token]

    def _find_refused_and_deleted(self, session: SparkSession, intent: Intent) -> Sequence[str]:
        path = self._context.paths.quarantine(self._spec.table)
        changed = [source for source in self._tables if source.has_deletions(intent.sources)]
        if not changed or not is_table(path):
            return ()
        stored = read_version(session, path, latest_version(path)).where(belongs_to(intent.table_id))
        ids: set[str] = set()
        for source in changed:
            refused = stored.where(F.startswith("source", F.lit(source.first_place))).select("row_id", "received")
            removed = source.removed_rows(session, intent.sources)
            # Without the changes: those that are not in the source any more.
            how = "left_anti" if removed is None else "left_semi"
            rows = source.rows(session, intent.sources) if removed is None else removed
            deleted = refused.join(rows.select(received_of(rows).alias("received")), "received", how)
            ids |= {row["row_id"] for row in deleted.select("row_id").collect()}
        return sorted(ids)

    def deleting_source(self, sources: BatchSources) -> str:
        """Return the source that deletes keys without an event: the first one with replaced rows, else the first."""
        changed = (source.table for source in self._tables if source.has_replaced_rows(sources))
        return next(changed, self._tables[0].table)

    def retracted_keys(self, session: SparkSession, intent: Intent, target_version: int) -> DataFrame | None:
        """Return the keys of rows that were removed from the source, one row per key.

        If the source does not have the changes of the versions any more, these are all keys that silver has.

        Returns:
            The keys; None if no row was removed, or if the batch reads a full snapshot.
        """
        changed = [source for source in self._tables if source.has_replaced_rows(intent.sources)]
        if self._spec.snapshot or not changed:
            return None
        removed = [(source.removed_rows(session, intent.sources), source.spec) for source in changed]
        # A source may have had rows of other sources' keys, which were refused: it retracts none of theirs.
        known = [
            silver_rows(rows, spec).where(is_own(self._spec)).select(*spec.keys)
            for rows, spec in removed
            if rows is not None
        ]
        if len(known) < len(removed):
            keys = self._all_keys(session, intent, target_version)
        else:
            keys = self._union(known)
            if (replayed := self.replays.read_earlier(session, intent)) is not None:
                of_files = F.col("_source").isin(*self.replaced_files(intent.sources))
                is_deleted = F.col(ROW_ID).isin(*self.refused_and_deleted(session, intent))
                keys = keys.union(replayed.where(of_files | is_deleted).select(*self._spec.keys))
        # A truncate has no key: it is not retracted, neither as a row of a file nor as a tombstone.
        return freeze(keys.where(reduce(and_, (F.col(key).isNotNull() for key in keys.columns))).distinct())

    def _all_keys(self, session: SparkSession, intent: Intent, target_version: int) -> DataFrame:
        """Return the keys of the target, of the tombstones, and of earlier replays, whose tombstones may be deleted.

        The batch reads all rows of the source again, so that no other key is missing.
        """
        paths, table = self._context.paths, self._spec.table
        target = read_version(session, paths.table(table), target_version)
        keys = target.where(is_own(self._spec)).select(*self._spec.keys)
        if (replayed := self.replays.read_earlier(session, intent)) is not None:
            keys = keys.union(replayed.select(*self._spec.keys))
        tombstones = paths.tombstones(table, intent.table_id)
        if not is_table(tombstones):
            return keys
        deleted = read_version(session, tombstones, latest_version(tombstones))
        return keys.union(deleted.where(is_own(self._spec)).select(*self._spec.keys))

    def rows_of_batch(self, session: SparkSession, intent: Intent, recomputed: DataFrame | None) -> DataFrame:
        """Return the new rows of a batch, and all rows of the recomputed keys, with their types and refusals.

        Rows that replays have added to intervals which are read again are among them, as these have accepted them.
        """
        if intent.sources.replay:
            rows = self.replays.read_replay(session, intent)
        else:
            require_same_sources(intent.sources, self._context.paths)
            again = intent.intervals_read_again
            bronze = {source.table: rows for source, rows in self._bronze_rows(session, intent)}
            rows = self._union(
                self._judged(session, intent, source, bronze[source.table], has_earlier=bool(again))
                for source in self._tables
            )
            replayed = self.replays.read_earlier(session, intent, bronze) if intent.sources.reprocess else None
            if replayed is not None:
                is_deleted = F.col(ROW_ID).isin(*self.refused_and_deleted(session, intent))
                rows = rows.unionByName(replayed.where(of_intervals(again) & ~is_deleted).select(*rows.columns))
        if recomputed is None:
            return rows
        all_rows = self.all_rows(session, intent)
        return with_recomputed_keys(rows.select(*all_rows.columns), all_rows, recomputed, self._spec.keys)

    def snapshots(self, sources: BatchSources) -> tuple[datetime, ...]:
        """Return the intervals of the full snapshots that a batch reads, oldest first."""
        if sources.snapshots:
            return sources.snapshots
        table = self._spec.only_source
        intervals = self._intervals(table, sources.source_ids[table], sources.ranges[table][1])
        return tuple(start for start in intervals if start not in sources.waiting)

    def rows_of_snapshots(self, session: SparkSession, intent: Intent) -> DataFrame:
        """Return the rows of these snapshots with their types and refusals."""
        if intent.sources.snapshots:
            return self.rows_of_batch(session, intent, None)
        return self.all_rows(session, intent).where(~of_intervals(intent.sources.waiting))

    def refused_rows(self, session: SparkSession, intent: Intent) -> DataFrame:
        """Return the rows that a batch puts into quarantine, each with its bronze row in `_received`."""
        again = bool(intent.intervals_read_again)
        received = (
            self._judged(session, intent, source, bronze, received_of(bronze), has_earlier=again)
            for source, bronze in self._bronze_rows(session, intent)
        )
        return self._union(received).where(is_quarantined())

    def keys_of_replays(self, session: SparkSession, intent: Intent) -> DataFrame | None:
        """Return the keys that replays have added to the snapshot that the batch reads; None for no replays."""
        replayed = self.replays.read_earlier(session, intent)
        if replayed is None:
            return None
        of_snapshot = F.col("_interval_start") == F.lit(intent.sources.snapshot_at).cast("timestamp")
        return replayed.where(of_snapshot).select(*self._spec.keys)

    def keys_refused_by_source(
        self, session: SparkSession, intent: Intent, starts: Sequence[datetime]
    ) -> DataFrame | None:
        """Return the keys of snapshot records that bronze has refused and that nobody has decided about yet.

        The records are pinned, so that a decision during the batch does not change its row counts.

        Returns:
            The keys, null where they cannot be read, and `_interval_start`; None if no record was refused.
        """
        events = self._context.ops.quarantine
        rows = events.pinned_rows(intent.table, intent.token)
        if not rows and (rows := self._undecided(intent.sources, starts)):
            events.pin(intent.table, intent.table_id, intent.token, rows, Decision("", "", intent.run_id))
        if not rows:
            return None
        received = received_frame(session, rows, self.replays.received_schema(session, self._spec.only_source))
        return received.select(*key_values(received, self._spec), "_interval_start")

    def _undecided(self, sources: BatchSources, starts: Sequence[datetime]) -> list[ReceivedRow]:
        """Return these records, also those that a replay has added to a later version than the batch reads."""
        source, paths = self._spec.only_source, self._context.paths
        _, upto = sources.ranges[source]
        last = self._context.ops.ledger.newest_number(source, sources.source_ids[source], upto)
        row_filter = RowFilter(starts=tuple(starts), statuses=(*PENDING, RowStatus.REPLAYED))
        refused = [row for row in quarantined_rows(StoredRows(source, paths), row_filter) if row.batch_seq <= last]
        return [row.received_row for row in refused if row.status is not RowStatus.REPLAYED or row.replayed_in > last]

    def new_snapshots(self, sources: BatchSources) -> set[datetime]:
        """Return the intervals of the snapshots that a batch reads for the first time, or again with new rows."""
        if sources.snapshots or not self._spec.keeps_history:
            return {*sources.snapshots, *([sources.snapshot_at] if sources.snapshot_at else [])}
        source, (after, upto) = self._spec.only_source, sources.ranges[self._spec.only_source]
        batches = self._context.ops.ledger.batches(
            source, sources.source_ids[source], -1 if after is None else after, upto
        )
        return {batch.intent.interval_start for batch in batches} | set(sources.released)

    def _bronze_rows(self, session: SparkSession, intent: Intent) -> Iterator[tuple[SourceTable, DataFrame]]:
        """Yield each source with its new rows, and all its rows of the intervals that are read again."""
        again = intent.intervals_read_again
        for source in self._tables:
            yield source, source.rows_of_batch(session, intent.sources, again)

    def all_rows(self, session: SparkSession, intent: Intent) -> DataFrame:
        """Return all rows of the sources, of earlier replays, and of the batch if it is a replay.

        A row that an earlier batch has read is refused if and only if it was refused then.
        """
        require_same_sources(intent.sources, self._context.paths)
        bronze = {source.table: source.rows(session, intent.sources) for source in self._tables}
        rows = self._union(
            self._judged_as_before(session, intent, source, bronze[source.table]) for source in self._tables
        )
        if (replayed := self.replays.read_earlier(session, intent, still_in=bronze)) is not None:
            is_deleted = F.col(ROW_ID).isin(*self.refused_and_deleted(session, intent))
            rows = rows.unionByName(replayed.where(~is_deleted).select(*rows.columns))
        if intent.sources.replay:
            rows = rows.unionByName(self.replays.read_replay(session, intent).select(*rows.columns))
        return rows

    def _judged_as_before(
        self, session: SparkSession, intent: Intent, source: SourceTable, bronze: DataFrame
    ) -> DataFrame:
        """Return bronze rows with refusals, those of earlier batches by the rules that these batches had."""
        if not self._earlier.have_other_rules(intent):
            return self._judged(session, intent, source, bronze, has_earlier=True)
        is_read = source.has_arrived(intent.sources) | of_intervals(intent.intervals_read_again)
        rows = self._judged(session, intent, source, bronze.where(is_read), has_earlier=True)
        return rows.unionByName(self._earlier.judged(session, intent, source, bronze.where(~is_read)))

    def _judged(
        self,
        session: SparkSession,
        intent: Intent,
        source: SourceTable,
        bronze: DataFrame,
        *more: Column,
        has_earlier: bool,
    ) -> DataFrame:
        """Return `silver_rows` of bronze rows with the refusals by references.

        If bronze has earlier rows too, each of these is refused if and only if it was refused when it arrived.
        """
        if not self._spec.references:
            return silver_rows(bronze, source.spec, *more)
        if not has_earlier:
            return self._references.judge(session, silver_rows(bronze, source.spec, *more), intent.sources.references)
        arrived = source.has_arrived(intent.sources)
        new = silver_rows(bronze.where(arrived), source.spec, received_of(bronze))
        earlier = silver_rows(bronze.where(~arrived), source.spec, received_of(bronze))
        judged = self._references.judge(session, new, intent.sources.references)
        rows = judged.unionByName(self._references.judge_as_before(session, earlier, intent))
        return rows if more else rows.drop(RECEIVED)

    @staticmethod
    def _union(frames: Iterable[DataFrame]) -> DataFrame:
        return reduce(DataFrame.unionByName, frames)


class EarlierRows:
    """Judge rows that earlier batches have read as these did, by other rules than those of the present spec.

    Otherwise, after a change of rules, a row would be in the table and in quarantine, or in neither.
    """

    def __init__(self, context: JobContext, spec: SilverSpec) -> None:
        self._context = context
        self._spec = spec

    def have_other_rules(self, intent: Intent) -> bool:
        """Whether batches of the table followed specs that may have refused other rows."""
        now = document_of(self._context.spec)
        return any(
            change.effect is Effect.RECOMPUTE
            for earlier in self._context.ops.specs.of(intent.table, intent.table_id).values()
            for change in spec_changes(earlier, now)
        )

    def judged(self, session: SparkSession, intent: Intent, source: SourceTable, bronze: DataFrame) -> DataFrame:
        """Return `silver_rows` of earlier rows of a source.

        Refused are those in quarantine, and those that the rules with `action: drop` of the batch that read them drop.
        """
        rows = silver_rows(bronze, source.spec.model_copy(update={"expectations": ()}), received_of(bronze))
        refused = list(self._dropped(intent, source, bronze))
        path = self._context.paths.quarantine(self._spec.table)
        if is_table(path):
            stored = read_version(session, path, latest_version(path)).where(belongs_to(intent.table_id))
            refused.append(stored.select(F.col("received").alias(RECEIVED)))
        if refused:
            rows = refuse_quarantined(rows, reduce(DataFrame.union, refused))
        return rows.drop(RECEIVED)

    def _dropped(self, intent: Intent, source: SourceTable, bronze: DataFrame) -> Iterator[DataFrame]:
        """Yield the earlier rows, as `RECEIVED`, that were dropped, for each spec that drops rows."""
        sources, by_spec = intent.sources, defaultdict[str, list[str]](list)
        of_source = source.table, sources.source_ids[source.table], sources.ranges[source.table][1]
        for load, spec_hash in last_reads(self._context.ops.ledger, intent.table, intent.table_id, *of_source):
            by_spec[spec_hash].append(load.token)
        for spec_hash, tokens in by_spec.items():
            spec = self._context.ops.specs.spec(intent.table, intent.table_id, spec_hash) or self._spec
            if isinstance(spec, SilverSpec) and any(rule.action is Action.DROP for rule in spec.expectations):
                loaded = bronze.where(F.col(BATCH_TOKEN).isin(*tokens))
                rows = silver_rows(loaded, spec.of_source(source.table), received_of(bronze))
                yield rows.where(is_dropped()).select(RECEIVED)


def received_of(bronze: DataFrame) -> Column:
    """Return a row of a source as silver receives it, as `RECEIVED`."""
    return as_received(filter(is_received, bronze.columns)).alias(RECEIVED)
