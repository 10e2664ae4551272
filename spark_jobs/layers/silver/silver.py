"""Silver: bronze rows merged by key and sequence, the last state of each key (SCD type 1) or every state (type 2)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.contracts.job.findings import Findings, merge_findings
from include.contracts.job.report import RowCounts
from include.contracts.spec.table_spec import SilverSpec
from include.control.gates.conservation import rows_of_rebuild
from include.control.gates.restore import close_restore
from include.control.ledger.deletes import Deletes, next_allowed_version
from include.control.log.batch import BatchSources, Intent, StreamPosition, Winner
from include.control.log.delta_log import committed_at, latest_version, read_commit
from include.control.log.stored_tables import is_table
from include.control.maintenance.retention import retention_of
from include.control.planning.bounded_ranges import bounded
from include.control.planning.full_snapshots import SnapshotPlan, Wait, full_snapshots, require_whole
from include.control.planning.source_ranges import changed_ranges, pin_sources
from include.errors import ConservationError
from spark_jobs.delta_io.merges import commit_no_change, merge_changes, merge_tombstones
from spark_jobs.delta_io.reads import read_version
from spark_jobs.delta_io.row_writes import append
from spark_jobs.layers.refused import quarantined_by_reason
from spark_jobs.layers.silver.delete_guard import require_allowed
from spark_jobs.layers.silver.merge_counts import MergeCounts, changed_rows, one_row
from spark_jobs.layers.silver.row_actions import SilverFates
from spark_jobs.layers.silver.source import SilverSource
from spark_jobs.layers.silver.tables import silver_shape, tombstones_of
from spark_jobs.protocol.batches import BatchPlan, Closing
from spark_jobs.protocol.quarantine import QuarantineWrite, quarantine_rows
from spark_jobs.protocol.secondary import write_once
from spark_jobs.runtime.context import JobContext
from spark_jobs.transforms.received import RECEIVED, with_row_id
from spark_jobs.transforms.refusals import is_accepted, reasons
from spark_jobs.transforms.silver import changes as C
from spark_jobs.transforms.silver.history import broken_keys
from spark_jobs.transforms.silver.retraction import tombstone_changes
from spark_jobs.transforms.silver.silver import start_type
from spark_jobs.transforms.silver.timeline import START_AT
from spark_jobs.transforms.stamps import is_written_by, with_stamp


class SilverMerge:
    """The `BatchWork` of a silver table.

    Attributes:
        spec: the table's spec.
        has_more: whether the last plan left something for further batches.
        waits: start of an interval -> why its full snapshot did not count, when the last batch was planned.
    """

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self.spec: SilverSpec = context.spec  # type: ignore[assignment]
        self._path = context.paths.table(self.spec.table)
        self._keys = {key: self.spec.columns[key].type for key in self.spec.keys}
        if self.spec.keeps_history:
            self._keys[START_AT] = start_type(self.spec)
        self._source = SilverSource(context, self.spec)
        self._fates = SilverFates(context, self.spec, self._source)
        self._counted: dict[str, MergeCounts] = {}
        self.has_more = False
        self.waits: Mapping[datetime, Wait] = {}

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        """The source's versions since the last batch, as many as one takes; with `reprocess` all of them, and the
        interval's rows again.

        Raises:
            NotReadyError: all that is new is the snapshot of the run's own interval, which is not whole.
        """
        paths, reprocess = self._context.paths, self._context.args.reprocess
        certified = pin_sources(self.spec, paths, self._context.records.gates, position)
        self.has_more = False
        waited = bool(self.spec.snapshot and position.last_sources.waiting)
        if not changed_ranges(self.spec, certified, paths) and not reprocess and not waited:
            return None
        whole = certified.model_copy(update={"reprocess": reprocess})
        allowed = self._up_to_allowed(whole, position.table_id)
        sources = allowed if reprocess else bounded(self.spec, allowed, paths, self._readable_since())
        if self.spec.snapshot:
            return self._plan_snapshots(position.last_sources, position.table_id, sources, allowed, whole)
        self.has_more = sources != whole
        return BatchPlan(sources)

    def _up_to_allowed(self, sources: BatchSources, table_id: str) -> BatchSources:
        """The sources up to where a person has allowed what is deleted, or all of them."""
        source, (after, upto) = self.spec.source, sources.ranges[self.spec.source]
        allowed = self._context.records.deletes.allowed(self.spec.table, table_id, sources.source_ids[source])
        first = next_allowed_version(allowed, after, upto)
        return sources.model_copy(update={"ranges": {source: (after, first)}})

    def write(self, session: SparkSession, intent: Intent, plan: BatchPlan) -> None:
        """Merge what changes the target; one commit even when nothing does, so that the range counts as consumed."""
        found = self._fates.classified(session, intent, latest_version(self._path))
        require_allowed(self._context, self.spec, intent, found.absent)
        changes = self._changes(found.rows, intent)
        if not found.counts.changes():
            commit_no_change(session, self._path)
        elif found.counts.only_inserts():
            append(changes.drop("_action"), self._path)
        else:
            few = F.broadcast(changes) if found.counts.changes() <= C.FEW_CHANGES else changes
            merge_changes(session, self._path, few, self._keys, found.bounds, found.counts.changing_fates())
        self._counted[intent.token] = found.counts

    def close(self, winner: Winner) -> Closing:
        """Quarantine what was refused, remember what was deleted, and hold the counts against the commit's own.

        Raises:
            ConservationError: the commit changed other numbers of rows than were counted.
        """
        if winner.intent.sources.restores is not None:
            return Closing(close_restore(winner, self._context.paths))
        if winner.intent.sources.rebuild:
            return Closing(rows_of_rebuild(self._path, winner))
        counts = self._counted.get(winner.token) or self._count_again(winner)
        paths, open_session = self._context.paths, self._context.open_session
        replaced = self._source.replaced_files(winner.intent.sources)
        again = self._source.read_again(winner.intent)
        if not winner.intent.sources.replay:
            quarantine = QuarantineWrite(paths, winner, counts.quarantined, replaced, again)
            quarantine.run(open_session, lambda session: self._refused(session, winner))
        tombstones = tombstones_of(self.spec, paths, winner.intent.table_id)
        deletes = counts.deletes and not self.spec.snapshot
        if deletes or (replaced and is_table(tombstones.path)):
            write_once(open_session, tombstones, winner, lambda session: self._bury(session, winner))
        fates = counts.to_row_counts()
        self._compare_with_commit(winner, fates)
        if self.spec.keeps_history and (fates.inserted or fates.updated or fates.deleted):
            self._require_sound_periods(winner)
        if winner.intent.sources.replay:
            self._source.replays.settle(winner, fates)
        return Closing(fates, findings=self._findings(winner, counts))

    def _readable_since(self) -> datetime:
        # Half of it, as for any reader of an old version: Delta refuses the version a moment after the whole.
        return self._context.now() - retention_of(self._context.catalog.spec(self.spec.source)) / 2

    def _changes(self, classified: DataFrame, intent: Intent) -> DataFrame:
        """The rows that change the target, as it stores them, and their `_action`."""
        stamped = with_stamp(classified.where(F.col("_action").isin(*C.CHANGES)), intent)
        return stamped.select(*silver_shape(self.spec).columns, "_action")

    def _plan_snapshots(self, last: BatchSources, table_id: str, *sources: BatchSources) -> BatchPlan | None:
        """The snapshots that count in the first of the sources, the smaller first, in which one does."""
        context, args = self._context, self._context.args
        allowed = args.interval_start if args.allow_deletes else None
        snapshots = full_snapshots(context.catalog, self.spec, args.landing, context.records, allowed)
        found = SnapshotPlan(None)
        for some in sources:
            found = snapshots.plan(some, last)
            self.waits = found.waits
            if found.sources:
                self.has_more = some != sources[-1]
                return BatchPlan(found.sources)
        if (wait := self.waits.get(args.interval.start)) and wait.is_empty:
            context.records.deletes.record_asked(self._emptied(wait, sources[-1], table_id), args.run_id)
        require_whole(self.spec.table, found, args.interval)
        return None

    def _emptied(self, wait: Wait, sources: BatchSources, table_id: str) -> Deletes:
        source = self.spec.source
        return Deletes(
            table=self.spec.table,
            table_id=table_id,
            interval_start=self._context.args.interval_start,
            source=source,
            source_id=sources.source_ids[source],
            source_version=wait.source_version,
            keys=wait.rows,
            of_keys=wait.rows,
            why="the files of the full snapshot hold no record",
        )

    def _findings(self, winner: Winner, counts: MergeCounts) -> Findings:
        if not counts.quarantined or winner.intent.sources.replay:  # a replay says itself what became of each row
            return counts.findings
        refused = quarantined_by_reason(self._context.paths.quarantine(self.spec.table), winner)
        return merge_findings([Findings(refused=refused), counts.findings])

    def _count_again(self, winner: Winner) -> MergeCounts:
        """The counts of a batch whose writer died: the same rows against the version below its commit."""
        with self._context.open_session({}) as session:
            return self._fates.classified(session, winner.intent, winner.version - 1).counts

    def _refused(self, session: SparkSession, winner: Winner) -> DataFrame:
        # Rows that are only read again, because of a retracted key, are accepted ones.
        refused = with_row_id(self._source.refused(session, winner.intent), self.spec.table, [F.col(RECEIVED)])
        return quarantine_rows(
            refused,
            winner,
            committed_at(self._path, winner.version),
            record=F.to_json(F.struct(*self.spec.columns)),
            reasons=reasons(),
            source=F.col("_source"),
            position=F.col("_position"),
        )

    def _bury(self, session: SparkSession, winner: Winner) -> None:
        rows = self._fates.rows(session, winner.intent, winner.version - 1)
        latest = C.latest_per_key(rows.judged.where(is_accepted()), self.spec.keys)
        table = tombstones_of(self.spec, self._context.paths, winner.intent.table_id)
        deletes = with_stamp(latest.where("_is_delete"), winner.intent).select(*table.shape.columns)
        merge_tombstones(session, table.path, tombstone_changes(deletes, rows.anew, self.spec.keys), self.spec.keys)

    def _compare_with_commit(self, winner: Winner, fates: RowCounts) -> None:
        commit = read_commit(self._path, winner.version)
        committed = changed_rows(commit) if commit else None
        if committed != (fates.inserted, fates.updated, fates.deleted):
            msg = (
                f"{self.spec.table} version {winner.version} changed {committed} rows (inserted, updated, deleted), "
                f"but {(fates.inserted, fates.updated, fates.deleted)} were counted\nThe version is not certified; "
                "compare it with its source before anything else."
            )
            raise ConservationError(msg)

    def _require_sound_periods(self, winner: Winner) -> None:
        keys = {key: self.spec.columns[key].type for key in self.spec.keys}
        with self._context.open_session({}) as session:
            rows = read_version(session, self._path, winner.version)
            touched = rows.where(is_written_by(winner.intent)).select(*keys).distinct()
            bounds = one_row(touched.agg(*C.key_bounds(keys, F.lit(True))))
            of_touched = rows.where(C.within(keys, bounds)).join(touched, list(keys), "left_semi")
            broken = broken_keys(of_touched, list(keys)).limit(5).collect()
        if broken:
            samples = ", ".join(str(tuple(row[key] for key in keys)) for row in broken)
            msg = (
                f"{self.spec.table} version {winner.version} has keys with periods that overlap: {samples}\nThe "
                "version is not certified. Has something else than this job written to the table? Restore the version "
                "before it, then run the interval again with reprocess."
            )
            raise ConservationError(msg)
