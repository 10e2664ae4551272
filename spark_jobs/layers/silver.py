"""Silver: bronze rows merged by key and sequence, one row a key (SCD type 1)."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.contracts.job_report import RowFates
from include.contracts.table_spec import SilverSpec
from include.control.batch import BatchSources, Intent, StreamPosition, Winner
from include.control.delta_log import commits_still_known, committed_at, read_commit
from include.control.source_ranges import changed_ranges, pin_sources
from include.errors import ConservationError
from spark_jobs.delta_io.batches import BatchPlan, Closing
from spark_jobs.delta_io.merges import merge_changes, merge_tombstones
from spark_jobs.delta_io.quarantine import QuarantineWrite, quarantine_rows
from spark_jobs.delta_io.reads import read_version
from spark_jobs.delta_io.row_writes import append
from spark_jobs.delta_io.secondary import SecondaryTable, write_once
from spark_jobs.delta_io.tables import TableShape, shape_properties
from spark_jobs.layers.merge_counts import KeyBounds, MergeCounts, changed_rows, fates_of, one_row
from spark_jobs.layers.silver_source import SilverSource
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.session import frozen
from spark_jobs.transforms import changes as C
from spark_jobs.transforms.judgement import accepted, fate_counts, reasons
from spark_jobs.transforms.received import RECEIVED, with_row_id
from spark_jobs.transforms.retraction import RECOMPUTED, tombstone_changes
from spark_jobs.transforms.silver import sequence_type
from spark_jobs.transforms.stamps import STAMP_COLUMNS, with_stamp


def silver_shape(spec: SilverSpec) -> TableShape:
    """The silver table of a spec: its columns, the winning sequence of each row, and the batch that wrote it."""
    declared = {name: column.type for name, column in spec.columns.items()}
    return TableShape(
        columns={**declared, **_order_columns(spec), "_content_hash": "bigint", **STAMP_COLUMNS},
        comments={name: column.description for name, column in spec.columns.items()},
        partitioned_by=spec.partitioned_by,
        properties=shape_properties(spec),
        comment=spec.description,
    )


class SilverMerge:
    """The `BatchWork` of a silver table."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self.spec: SilverSpec = context.spec  # type: ignore[assignment]
        self._path = context.paths.table(self.spec.table)
        self._keys = {key: self.spec.columns[key].type for key in self.spec.keys}
        self._source = SilverSource(context, self.spec)
        self._counted: dict[str, MergeCounts] = {}

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        """The source's versions since the last batch; with `reprocess` the interval's rows again as well."""
        paths, reprocess = self._context.paths, self._context.args.reprocess
        sources = pin_sources(self.spec, paths, self._context.gates, position)
        if not changed_ranges(sources, paths) and not reprocess:
            return None
        snapshot_at = self._snapshot_at(sources, position.last_sources.snapshot_at)
        return BatchPlan(sources.model_copy(update={"snapshot_at": snapshot_at, "reprocess": reprocess}))

    def write(self, session: SparkSession, intent: Intent, plan: BatchPlan) -> None:
        """Merge what changes the target; one commit even when nothing does, so that the range counts as consumed."""
        counts, classified, bounds = self._classified(session, intent, DeltaTable(str(self._path)).version())
        changes = self._changes(classified, intent)
        if counts.only_inserts():
            append(changes.drop("_fate"), self._path)
        else:
            merge_changes(session, self._path, changes, self._keys, bounds)
        self._counted[intent.token] = counts

    def close(self, winner: Winner) -> Closing:
        """Quarantine what was refused, remember what was deleted, and hold the counts against the commit's own.

        Raises:
            ConservationError: the commit changed other numbers of rows than were counted.
        """
        counts = self._counted.get(winner.token) or self._count_again(winner)
        paths, open_session = self._context.paths, self._context.open_session
        replaced = self._source.replaced_files(winner.intent.sources)
        again = self._source.read_again(winner.intent)
        if not winner.intent.sources.replay:
            quarantine = QuarantineWrite(paths, winner, counts.quarantined, replaced, again)
            quarantine.run(open_session, lambda session: self._refused(session, winner))
        tombstones = tombstones_of(self.spec, paths.tombstones(self.spec.table))
        if counts.deletes or (replaced and DeltaTable.is_deltatable(str(tombstones.path))):
            write_once(open_session, tombstones, winner, lambda session: self._bury(session, winner))
        fates = counts.to_fates()
        self._compare_with_commit(winner, fates)
        if winner.intent.sources.replay:
            self._source.replays.settle(winner, fates)
        return Closing(fates)

    def _changes(self, classified: DataFrame, intent: Intent) -> DataFrame:
        """The rows that change the target, as it stores them, and their `_fate`."""
        stamped = with_stamp(classified.where(F.col("_fate").isin(*C.CHANGES)), intent)
        return stamped.select(*silver_shape(self.spec).columns, "_fate")

    def _snapshot_at(self, sources: BatchSources, held: datetime | None) -> datetime | None:
        """The newest interval whose full snapshot has arrived, as the source's commits say."""
        if not self.spec.snapshot:
            return None
        after, upto = sources.ranges[self.spec.source]
        source = self._context.paths.table(self.spec.source)
        commits = commits_still_known(source, after)
        arrived = [
            Intent.model_validate(commit.metadata).interval_start
            for commit in commits
            if commit.metadata and commit.version <= upto and not commit.metadata["sources"].get("replay")
        ]
        # What an earlier source held is no snapshot of the one that was built anew.
        known = [held] if held and after is not None else []
        return max([*arrived, *known], default=None)

    def _classified(
        self, session: SparkSession, intent: Intent, version: int
    ) -> tuple[MergeCounts, DataFrame, KeyBounds]:
        """The batch's rows by fate against one target version: the counts, the frame, the bounds of its keys.

        Frozen, for two reasons: the optimizer would copy the rules' expressions into every filter above them
        (15 s for one day of flights), and Delta's MERGE refuses a source that is cached in any other way.
        """
        retracted = self._source.retracted(session, intent, version)
        rows = frozen(self._source.judged(session, intent, retracted))
        facts = one_row(rows.agg(*fate_counts(), *C.key_bounds(self._keys, accepted())))
        # What a full snapshot lacks, or the source has taken back, may lie beyond the keys of the batch's rows.
        bounds = {} if self.spec.snapshot or retracted is not None else facts
        classified = frozen(self._with_fates(session, rows, intent, version, bounds, retracted))
        return MergeCounts.of(facts, fates_of(classified)), classified, bounds

    def _with_fates(
        self,
        session: SparkSession,
        rows: DataFrame,
        intent: Intent,
        version: int,
        bounds: KeyBounds,
        retracted: DataFrame | None,
    ) -> DataFrame:
        keys = self.spec.keys
        state = [*keys, *C.ORDER, "_content_hash"]
        target = read_version(session, self._path, version).where(C.within(self._keys, bounds)).select(*state)
        if self.spec.snapshot:
            return self._with_snapshot_fates(session, rows, target, intent)
        latest = C.latest_per_key(rows.where(accepted()), keys)
        if retracted is None:
            return C.with_fate(latest, target, self._tombstones(session), keys)
        anew = F.coalesce(RECOMPUTED, F.lit(False))
        fates = C.with_fate(latest, target, self._tombstones(session), keys, anew)
        gone = C.absent_rows(latest.select(*keys), target.join(retracted, list(keys), "left_semi"), keys)
        return fates.unionByName(gone, allowMissingColumns=True)

    def _with_snapshot_fates(
        self, session: SparkSession, rows: DataFrame, target: DataFrame, intent: Intent
    ) -> DataFrame:
        newest = F.col("_interval_start") == F.lit(intent.sources.snapshot_at).cast("timestamp")
        delivered = rows.where(newest)
        latest = C.latest_per_key(delivered.where(accepted()), self.spec.keys)
        kept = C.with_snapshot_fate(latest, target, self.spec.keys)
        if intent.sources.replay:
            return kept
        keys = delivered.select(*self.spec.keys)
        if (replayed := self._source.delivered_by_replays(session, intent)) is not None:
            keys = keys.union(replayed)
        absent = C.absent_rows(keys, target, self.spec.keys)
        return kept.unionByName(absent, allowMissingColumns=True)

    def _tombstones(self, session: SparkSession) -> DataFrame | None:
        path = self._context.paths.tombstones(self.spec.table)
        if not DeltaTable.is_deltatable(str(path)):
            return None
        return read_version(session, path, DeltaTable(str(path)).version())

    def _count_again(self, winner: Winner) -> MergeCounts:
        """The counts of a batch whose writer died: the same rows against the version below its commit."""
        with self._context.open_session({}) as session:
            counts, _, _ = self._classified(session, winner.intent, winner.version - 1)
            return counts

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
        retracted = self._source.retracted(session, winner.intent, winner.version - 1)
        rows = self._source.judged(session, winner.intent, retracted)
        latest = C.latest_per_key(rows.where(accepted()), self.spec.keys)
        table = tombstones_of(self.spec, self._context.paths.tombstones(self.spec.table))
        deletes = with_stamp(latest.where("_is_delete"), winner.intent).select(*table.shape.columns)
        merge_tombstones(session, table.path, tombstone_changes(deletes, retracted, self.spec.keys), self.spec.keys)

    def _compare_with_commit(self, winner: Winner, fates: RowFates) -> None:
        commit = read_commit(self._path, winner.version)
        committed = changed_rows(commit) if commit else None
        if committed != (fates.inserted, fates.updated, fates.deleted):
            msg = (
                f"{self.spec.table} version {winner.version} changed {committed} rows (inserted, updated, deleted), "
                f"but {(fates.inserted, fates.updated, fates.deleted)} were counted. The version is not certified; "
                "compare it with its source before anything else."
            )
            raise ConservationError(msg)


def tombstones_of(spec: SilverSpec, path: Path) -> SecondaryTable:
    """The table of the deleted keys of a silver table, each with its sequence."""
    keys = {key: spec.columns[key].type for key in spec.keys}
    columns = {**keys, **_order_columns(spec), **STAMP_COLUMNS}
    return SecondaryTable(f"silver_tombstones.{spec.name}", path, TableShape(columns, comment="Deleted keys"))


def _order_columns(spec: SilverSpec) -> dict[str, str]:
    return {"_sequence": sequence_type(spec), "_source_hash": "bigint"}
