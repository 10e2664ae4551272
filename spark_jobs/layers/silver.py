"""Silver: bronze rows merged by key and sequence, the last state of each key (SCD type 1) or every state (type 2)."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.contracts.findings import Findings, together
from include.contracts.job_report import RowFates
from include.contracts.table_spec import SilverSpec
from include.control.batch import BatchSources, Intent, StreamPosition, Winner
from include.control.bounded_ranges import bounded
from include.control.delta_log import commits_still_known, committed_at, read_commit
from include.control.restore import close_restore
from include.control.retention import retention_of
from include.control.source_ranges import changed_ranges, pin_sources
from include.control.stored_tables import is_table, open_table
from include.errors import ConservationError
from spark_jobs.delta_io.batches import BatchPlan, Closing
from spark_jobs.delta_io.merges import merge_changes, merge_tombstones
from spark_jobs.delta_io.quarantine import QuarantineWrite, quarantine_rows
from spark_jobs.delta_io.reads import read_version
from spark_jobs.delta_io.row_writes import append
from spark_jobs.delta_io.secondary import write_once
from spark_jobs.layers.merge_counts import MergeCounts, changed_rows, one_row
from spark_jobs.layers.refused import quarantined_by_reason
from spark_jobs.layers.silver_fates import SilverFates
from spark_jobs.layers.silver_source import SilverSource
from spark_jobs.layers.silver_tables import silver_shape, tombstones_of
from spark_jobs.runtime.context import JobContext
from spark_jobs.transforms import changes as C
from spark_jobs.transforms.history import broken_keys
from spark_jobs.transforms.judgement import accepted, reasons
from spark_jobs.transforms.received import RECEIVED, with_row_id
from spark_jobs.transforms.retraction import tombstone_changes
from spark_jobs.transforms.silver import start_type
from spark_jobs.transforms.stamps import with_stamp, written_by
from spark_jobs.transforms.timeline import START_AT


class SilverMerge:
    """The `BatchWork` of a silver table.

    Attributes:
        spec: the table's spec.
        has_more: whether the last plan left something for further batches.
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

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        """The source's versions since the last batch, as many as one takes; with `reprocess` all of them, and the
        interval's rows again."""
        paths, reprocess = self._context.paths, self._context.args.reprocess
        certified = pin_sources(self.spec, paths, self._context.records.gates, position)
        self.has_more = False
        if not changed_ranges(self.spec, certified, paths) and not reprocess:
            return None
        sources = certified if reprocess else bounded(self.spec, certified, paths, self._readable_since())
        self.has_more = sources != certified
        again = sources.model_copy(update={"reprocess": reprocess})
        return BatchPlan(self._with_snapshots(again, position.last_sources.snapshot_at))

    def write(self, session: SparkSession, intent: Intent, plan: BatchPlan) -> None:
        """Merge what changes the target; one commit even when nothing does, so that the range counts as consumed."""
        found = self._fates.classified(session, intent, open_table(self._path).version())
        changes = self._changes(found.rows, intent)
        if found.counts.only_inserts():
            append(changes.drop("_fate"), self._path)
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
        fates = counts.to_fates()
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
        """The rows that change the target, as it stores them, and their `_fate`."""
        stamped = with_stamp(classified.where(F.col("_fate").isin(*C.CHANGES)), intent)
        return stamped.select(*silver_shape(self.spec).columns, "_fate")

    def _arrived(self, sources: BatchSources) -> list[Intent]:
        """The batches of the source in the range."""
        after, upto = sources.ranges[self.spec.source]
        commits = commits_still_known(self._context.paths.table(self.spec.source), after)
        brought = (commit.metadata for commit in commits if commit.metadata and commit.version <= upto)
        return [Intent.model_validate(metadata) for metadata in brought]

    def _with_snapshots(self, sources: BatchSources, held: datetime | None) -> BatchSources:
        """The sources with the newest interval whose full snapshot has arrived, and those that go on top of history."""
        if not self.spec.snapshot:
            return sources
        intents = self._arrived(sources)
        # A replay brings single rows to snapshots of before.
        arrived = sorted({intent.interval_start for intent in intents if not intent.sources.replay})
        replays = any(intent.sources.replay for intent in intents)
        # What an earlier source held is no snapshot of the one that was built anew.
        known = held if sources.ranges[self.spec.source][0] is not None else None
        newest = max([*arrived, *([known] if known else [])], default=None)
        follows = known and arrived and arrived[0] > known and not (replays or sources.reprocess)
        on_top = tuple(arrived) if self.spec.keeps_history and follows else ()
        return sources.model_copy(update={"snapshot_at": newest, "snapshots": on_top})

    def _findings(self, winner: Winner, counts: MergeCounts) -> Findings:
        if not counts.quarantined or winner.intent.sources.replay:  # a replay says itself what became of each row
            return counts.findings
        refused = quarantined_by_reason(self._context.paths.quarantine(self.spec.table), winner)
        return together([Findings(refused=refused), counts.findings])

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
        latest = C.latest_per_key(rows.judged.where(accepted()), self.spec.keys)
        table = tombstones_of(self.spec, self._context.paths, winner.intent.table_id)
        deletes = with_stamp(latest.where("_is_delete"), winner.intent).select(*table.shape.columns)
        merge_tombstones(session, table.path, tombstone_changes(deletes, rows.anew, self.spec.keys), self.spec.keys)

    def _compare_with_commit(self, winner: Winner, fates: RowFates) -> None:
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
            touched = rows.where(written_by(winner.intent)).select(*keys).distinct()
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
