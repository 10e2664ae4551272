"""Silver: merge bronze rows by key and sequence, into the last state of each key (SCD 1) or all its states (SCD 2).

A batch stops before its commit if it would delete more absent keys than its spec allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.job.findings import AbsentKeys, Findings, merge_findings
from millrace.contracts.job.report import RowCounts
from millrace.contracts.spec.table_spec import SilverSpec
from millrace.control.gates.conservation import rows_of_deletion, rows_of_rebuild
from millrace.control.ledger.deletes import Deletes, are_allowed, are_too_many, next_allowed_version, refusal_message
from millrace.control.log.batch import ONE_STREAM, BatchSources, Intent, Stream, StreamPosition, Winner
from millrace.control.log.delta_log import latest_version, read_commit
from millrace.control.log.stored_tables import is_table
from millrace.control.maintenance.retention import retention_of
from millrace.control.planning.full_snapshots import FullSnapshots, SnapshotDelay, SnapshotPlan, require_whole
from millrace.control.planning.source_ranges import changed_ranges, limit_batch, pin_sources
from millrace.control.quarantine.events import Decision
from millrace.control.repair.following import require_followable
from millrace.control.repair.restoring import close_restore
from millrace.control.storage.read_cache import cached_reads
from millrace.errors import ConservationError, DeletesRefusedError
from millrace_spark.delta_io.merges import commit_no_change, merge_changes, merge_tombstones
from millrace_spark.delta_io.reads import read_version
from millrace_spark.delta_io.row_writes import append
from millrace_spark.layers.own_table import require_fitting_table
from millrace_spark.layers.quarantined import quarantined_by_reason
from millrace_spark.layers.silver.merge_counts import MergeCounts, committed_changes
from millrace_spark.layers.silver.replays import WaitingReplays
from millrace_spark.layers.silver.row_actions import RowActions
from millrace_spark.layers.silver.source import SilverSource
from millrace_spark.layers.silver.tables import silver_shape, tombstones_of
from millrace_spark.layers.streams import follow_concurrency
from millrace_spark.protocol.batches import BatchPlan, Closing
from millrace_spark.protocol.quarantine import QuarantineWrite, quarantine_rows
from millrace_spark.protocol.secondary import write_once
from millrace_spark.runtime.context import JobContext
from millrace_spark.transforms.received import RECEIVED, with_row_id
from millrace_spark.transforms.refusals import is_accepted, reasons
from millrace_spark.transforms.silver import changes as C
from millrace_spark.transforms.silver.history import broken_keys
from millrace_spark.transforms.silver.partitions import foreign_partitions, own_partitions, require_own_partitions
from millrace_spark.transforms.silver.retraction import tombstone_changes
from millrace_spark.transforms.silver.timeline import START_AT
from millrace_spark.transforms.stamps import is_written_by, with_stamp


class SilverMerge:
    """The `BatchWork` of a silver table.

    Args:
        context: the job's.
        stream: the stream of its batches; by default the only one of the table. The stream of a source merges no other.

    Attributes:
        spec: the table's spec, with the sources of the stream.
        has_more: whether the last plan left something for further batches.
        delays: start of an interval -> why the last plan did not read its full snapshot.
    """

    def __init__(self, context: JobContext, stream: Stream | None = None) -> None:
        self._context = context
        spec: SilverSpec = context.spec  # type: ignore[assignment]
        # The one stream has batches of any partitions, also while the table gets streams of its sources.
        whole, name = spec.model_copy(update={"concurrent_by": None}), stream.name if stream else ONE_STREAM
        self.spec = whole if name == ONE_STREAM else spec.of_stream(name)
        self._path = context.paths.table(self.spec.table)
        self._keys = {key: self.spec.columns[key].type for key in self.spec.keys}
        if self.spec.keeps_history:
            self._keys[START_AT] = self.spec.start_type
        self._source = SilverSource(context, self.spec)
        self._waiting = WaitingReplays(context, self.spec, self._source.replays)
        self._row_actions = RowActions(context, self.spec, self._source)
        self._counts: dict[str, MergeCounts] = {}
        self.has_more = False
        self.delays: Mapping[datetime, SnapshotDelay] = {}

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        """Plan the sources' versions since the last batch: as many as fit, or with `reprocess` all of them.

        Before that, plan a replay of the rows that waited for a table which has their values now.

        Raises:
            NotReadyError: only the snapshot of the run's own interval is new, and it is not complete.
            BadInputError: a source was restored, and only a rebuild follows that.
        """
        paths, reprocess = self._context.paths, self._context.args.reprocess
        certified = pin_sources(self.spec, paths, self._context.ops.gates, position)
        if replay := self._waiting.plan(position, certified):
            self.has_more = True
            return BatchPlan(replay)
        self.has_more = False
        has_waiting = bool(self.spec.snapshot and position.last_sources.waiting)
        if not changed_ranges(self.spec, certified, paths) and not reprocess and not has_waiting:
            return None
        for source, span in certified.ranges.items():
            require_followable(self.spec, source, certified.source_ids[source], span, self._context.ops)
        rebuilt = self._rebuilt(certified.source_ids, position.last_sources.source_ids)
        whole = certified.model_copy(update={"reprocess": reprocess, "rebuilt": rebuilt})
        # Each source up to the first version for which a person has allowed deletes, else the whole source.
        deletes, ranges = self._context.ops.deletes, dict[str, tuple[int | None, int]]()
        for source, (after, upto) in whole.ranges.items():
            of_source = deletes.allowed_deletes(self.spec.table, position.table_id, whole.source_ids[source])
            ranges[source] = after, next_allowed_version(of_source, after, upto)
        allowed = whole.model_copy(update={"ranges": ranges})
        # Half of the retention, as for any reader of an old version: Delta refuses a version soon after its retention.
        retention = min(retention_of(self._context.catalog.spec(source)) for source in ranges)
        readable_since = self._context.now() - retention / 2
        is_whole = reprocess or rebuilt
        sources = allowed if is_whole else limit_batch(self.spec, allowed, paths, readable_since)
        if self.spec.snapshot:
            return self._plan_snapshots(position.last_sources, position.table_id, sources, allowed, whole)
        self.has_more = sources != whole
        return BatchPlan(sources)

    def write(self, session: SparkSession, intent: Intent, plan: BatchPlan) -> None:
        """Merge the rows that change the target; without such rows, commit that the source versions were read.

        Raises:
            BadInputError: a source of a table with `concurrent_by` delivers rows of other partitions than its own; or
                the stream of the source is new, and earlier batches have merged such rows.
        """
        if intent.sources.reads_nothing:
            if intent.sources.ranges:
                restricted = self._context.restricted(self.spec.table)
                require_own_partitions(self.spec, self._foreign_rows(session, intent), restricted)
            commit_no_change(session, self._path)
            return
        if rebuilt := " and ".join(intent.sources.rebuilt):
            self._context.notes.append(f"{self.spec.table}: all keys were computed again: {rebuilt} was rebuilt")
        with cached_reads():  # nothing of this is committed yet
            actions = self._row_actions.find(session, intent, latest_version(self._path))
            source = self._source.deleting_source(intent.sources)
            require_allowed(self._context, self.spec, source, intent, actions.absent)
        counts = actions.counts
        changes = with_stamp(actions.rows.where(F.col("_action").isin(*C.CHANGES)), intent)
        changes = changes.select(*silver_shape(self.spec).columns, "_action")
        if not counts.changes():
            commit_no_change(session, self._path)
        elif counts.changing_actions() <= {C.INSERT}:
            append(changes.drop("_action"), self._path)
        else:
            changes = F.broadcast(changes) if counts.changes() <= C.FEW_CHANGES else changes
            kinds, own = counts.changing_actions(), own_partitions(self.spec, "t.")
            merge_changes(session, self._path, changes, self._keys, actions.bounds, kinds, own)
        self._counts[intent.token] = counts

    def close(self, winner: Winner) -> Closing:
        """Write the quarantine and the tombstones, and compare the counts with those of the commit.

        Raises:
            ConservationError: the commit changed a different number of rows.
        """
        if winner.intent.sources.restores is not None:
            return Closing(close_restore(winner, self._context.ops), quarantine_grew=None)
        if winner.intent.sources.deletes:
            return Closing(rows_of_deletion(self._path, winner))
        if winner.intent.sources.rebuild:
            return Closing(rows_of_rebuild(self._path, winner), quarantine_grew=None)
        if winner.intent.sources.reads_nothing:
            return Closing(RowCounts())
        planned = self._context.as_planned(winner.intent)
        if planned is not self._context:
            return SilverMerge(planned, Stream(self.spec.table, winner.intent.stream)).close(winner)
        counts = self._counts.get(winner.token)
        if counts is None:  # The driver that has written the batch died.
            with self._context.open_session({}) as session:
                counts = self._row_actions.find(session, winner.intent, winner.version - 1).counts
        paths, open_session = self._context.paths, self._context.open_session
        replaced = self._source.replaced_files(winner.intent.sources)
        grew: int | None = None
        if not winner.intent.sources.replay:
            again = winner.intent.intervals_read_again
            restarted = self._source.restarted_places(winner.intent.sources)
            own = self._source.first_places if self.spec.sources else ()
            decided = self._source.replays.decided_rows(winner.intent.sources) if restarted else ()
            quarantine = QuarantineWrite(paths, winner, counts.quarantined, replaced, again, restarted, own, decided)
            grew = quarantine.run(open_session, partial(self._refused, winner))
            grew = None if self._discard_deleted(winner) else grew
        tombstones = tombstones_of(self.spec, paths, winner.intent.table_id)
        deletes = counts.deletes and not self.spec.snapshot
        if deletes or (self._source.retracts_rows(winner.intent.sources) and is_table(tombstones.path)):
            write_once(open_session, tombstones, winner, lambda session: self._write_tombstones(session, winner))
        rows = counts.to_row_counts()
        self._compare_with_commit(winner, rows)
        if self.spec.keeps_history and (rows.inserted or rows.updated or rows.deleted):
            self._require_sound_periods(winner)
        findings = counts.findings
        if winner.intent.sources.replay:
            self._source.replays.settle(winner, rows)
        elif counts.quarantined:
            refused = quarantined_by_reason(paths.quarantine(self.spec.table), winner, counts.quarantined)
            findings = merge_findings([Findings(refused=refused), findings])
        return Closing(rows, findings=findings, quarantine_grew=grew)

    def _rebuilt(self, ids: Mapping[str, str], ids_before: Mapping[str, str]) -> tuple[str, ...]:
        """Return the sources that a rebuild, or its undo, has replaced since the last batch.

        Their events may have other keys and other values: the stored ones would supersede half of these by chance.
        """
        last_rebuild = self._context.ops.ledger.history.last_rebuild
        replaced = [table for table, table_id in ids.items() if ids_before.get(table, table_id) != table_id]
        return tuple(table for table in replaced if last_rebuild(table, ids[table]))

    def _foreign_rows(self, session: SparkSession, intent: Intent) -> Mapping[str, Any]:
        """Return the aggregates `foreign_partitions` of all rows from which keys are computed again."""
        foreign = foreign_partitions(self.spec, is_accepted())
        return self._source.all_rows(session, intent).agg(*foreign).collect()[0].asDict() if foreign else {}

    def _plan_snapshots(self, last: BatchSources, table_id: str, *sources: BatchSources) -> BatchPlan | None:
        """Plan the complete snapshots of the first of the sources that has any; smaller sources come first."""
        context, args = self._context, self._context.args
        allowed = args.interval_start if args.allow_deletes else None
        snapshots = FullSnapshots(context.catalog, self.spec, args.landing, context.ops, allowed)
        plan = SnapshotPlan(None)
        for candidate in sources:
            plan = snapshots.plan(candidate, last)
            self.delays = plan.delays
            if plan.sources:
                self.has_more = candidate != sources[-1]
                return BatchPlan(plan.sources)
        if (delay := self.delays.get(args.interval.start)) and delay.is_empty:
            why = "the files of the full snapshot hold no record"
            absent = AbsentKeys(keys=delay.rows, of_keys=delay.rows, why=why)
            start, version = args.interval_start, delay.source_version
            deletes = deletes_of(self.spec, self.spec.only_source, table_id, sources[-1], absent, start, version)
            context.ops.deletes.record_asked(deletes, args.run_id)
        require_whole(self.spec.table, plan, args.interval)
        return None

    def _refused(self, winner: Winner, session: SparkSession, refused_at: datetime) -> DataFrame:
        # All rows of recomputed keys that the batch reads again are accepted rows.
        refused = with_row_id(self._source.refused_rows(session, winner.intent), self.spec.table, [F.col(RECEIVED)])
        return quarantine_rows(
            refused,
            winner,
            refused_at,
            record=F.to_json(F.struct(*self.spec.columns)),
            reasons=reasons(),
            source=F.col("_source"),
            position=F.col("_position"),
        )

    def _discard_deleted(self, winner: Winner) -> bool:
        """Discard the quarantined rows that a source has deleted; return whether there are any."""
        if not (tables := self._source.sources_with_deletions(winner.intent.sources)):
            return False
        with self._context.open_session({}) as session:
            ids = self._source.refused_and_deleted(session, winner.intent)
        decision = Decision("", f"deleted from {' and '.join(tables)}", winner.intent.run_id)
        self._context.ops.quarantine.record_deleted(winner, ids, decision)
        return bool(ids)

    def _write_tombstones(self, session: SparkSession, winner: Winner) -> None:
        rows = self._row_actions.read_rows(session, winner.intent, winner.version - 1)
        latest = C.latest_per_key(rows.checked.where(is_accepted()), self.spec.keys)
        table = tombstones_of(self.spec, self._context.paths, winner.intent.table_id)
        deletes = with_stamp(latest.where("_is_delete"), winner.intent).select(*table.shape.columns)
        changes = tombstone_changes(deletes, rows.recomputed_keys, self.spec.keys)
        merge_tombstones(session, table.path, changes, self.spec.keys, forgets=rows.recomputed_keys is not None)

    def _compare_with_commit(self, winner: Winner, rows: RowCounts) -> None:
        commit = read_commit(self._path, winner.version)
        committed = committed_changes(commit) if commit else None
        counted = (rows.inserted, rows.updated, rows.deleted)
        if committed != counted:
            raise ConservationError(
                f"{self.spec.table} version {winner.version} changed {committed} rows (inserted, updated, deleted), "
                f"but {counted} were counted\nThe version is not certified; "
                "compare it with its source before anything else."
            )

    def _require_sound_periods(self, winner: Winner) -> None:
        keys = {key: self.spec.columns[key].type for key in self.spec.keys}
        with self._context.open_session({}) as session:
            rows = read_version(session, self._path, winner.version)
            touched = rows.where(is_written_by(winner.intent)).select(*keys).distinct()
            bounds = touched.agg(*C.key_bounds(keys, F.lit(True))).collect()[0].asDict()
            of_touched = rows.where(C.within(keys, bounds)).join(touched, list(keys), "left_semi")
            broken = broken_keys(of_touched, list(keys)).limit(5).collect()
        if broken:
            shown = self._context.restricted(self.spec.table).shown
            samples = ", ".join(str(tuple(shown(key, row[key]) for key in keys)) for row in broken)
            raise ConservationError(
                f"{self.spec.table} version {winner.version} has keys with periods that overlap: {samples}\nThe "
                "version is not certified. Has something else than this job written to the table? Restore the version "
                "before it, then run the interval again with reprocess."
            )


def require_allowed(
    context: JobContext, spec: SilverSpec, source: str, intent: Intent, absent: Sequence[AbsentKeys]
) -> None:
    """Check that the batch may delete its absent keys, which are absent because of `source`.

    Raises:
        DeletesRefusedError: there are too many, and no person has allowed it; the question is in `ops.deletes`.
    """
    if not absent:
        return
    records = context.ops.deletes
    upto, start = intent.sources.ranges[source][1], intent.interval_start
    all_deletes = [deletes_of(spec, source, intent.table_id, intent.sources, keys, start, upto) for keys in absent]
    allowed = records.allowed_deletes(spec.table, intent.table_id, intent.sources.source_ids[source])
    for deletes, keys in zip(all_deletes, absent, strict=True):
        allowed_now = context.allows_deletes(keys.interval_start if spec.snapshot else None)
        if allowed_now and not _is_allowed(deletes, allowed, context, spec):
            approval = {"said_by": context.args.allow_deletes, "reason": "--allow-deletes", "run_id": intent.run_id}
            records.record_allowed(deletes, **approval)
            allowed.append(deletes)
    for deletes, keys in zip(all_deletes, absent, strict=True):
        too_many = are_too_many(max(deletes.keys - keys.erased, 0), deletes.of_keys, spec.max_deleted_percent)
        if too_many and not _is_allowed(deletes, allowed, context, spec):
            records.record_asked(deletes, intent.run_id)
            raise DeletesRefusedError(refusal_message(deletes, spec.max_deleted_percent))


def deletes_of(
    spec: SilverSpec,
    source: str,
    table_id: str,
    sources: BatchSources,
    absent: AbsentKeys,
    interval_start: datetime,
    version: int,
) -> Deletes:
    """Return the deletes of absent keys; `version` is the version of the source up to which the batch reads."""
    return Deletes(
        table=spec.table,
        table_id=table_id,
        interval_start=absent.interval_start or interval_start,
        source=source,
        source_id=sources.source_ids[source],
        source_version=version,
        keys=absent.keys,
        of_keys=absent.of_keys,
        samples=absent.samples,
        why=absent.why,
    )


def _is_allowed(deletes: Deletes, allowed: Sequence[Deletes], context: JobContext, spec: SilverSpec) -> bool:
    upto = deletes.source_version
    if not allowed or not spec.snapshot:
        return are_allowed(allowed, deletes.keys, upto, upto)
    batches = context.ops.ledger.batches_of(deletes.source, deletes.source_id, [deletes.interval_start])
    since = max((batch.version for batch in batches if batch.version <= upto), default=upto)
    return are_allowed(allowed, deletes.keys, since, upto, deletes.interval_start)


def merges_of(context: JobContext) -> Callable[[Stream], SilverMerge]:
    """Return what merges each stream of the job's table, after its streams were made those of the spec.

    Raises:
        MisfitError: the table does not fit its spec. This comes first: a batch of the change would name the new spec.
        BadInputError, ConflictError: as `follow_concurrency`.
    """
    require_fitting_table(context, context.spec)
    merge_of = partial(SilverMerge, context)
    follow_concurrency(context, merge_of)
    return merge_of
