"""The switch: one commit puts the table that was built anew in the place of the one in use (ADR 26).

All that is known of the new rows is written down before, under the id that they will have: files, certificate, refused
rows, deleted keys. It counts from the commit on, and not a moment before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from include.contracts.lake_path import LakePath
from include.contracts.spec.table_spec import AnySpec, BronzeSpec, SilverSpec
from include.control.changes.staging import take_over_loads
from include.control.gates.conservation import check_conservation, rows_of_rebuild
from include.control.ledger.new_columns import ColumnState
from include.control.ledger.resolution import resolve, table_id, winner_at
from include.control.log.batch import BatchSources, Intent, Stream, StreamPosition, Winner
from include.control.log.delta_log import latest_version
from include.control.log.stored_tables import TABLE_ID, is_table, open_table
from include.errors import ConflictError, MillraceError
from spark_jobs.delta_io.reads import read_version
from spark_jobs.delta_io.row_writes import replace_where
from spark_jobs.delta_io.tables import ensure_table, replace_statement, spark_path
from spark_jobs.layers.maintenance.maintenance import maintenance_conf
from spark_jobs.layers.rebuild.staged_builds import StagedBuild
from spark_jobs.layers.silver.tables import tombstones_of
from spark_jobs.protocol.batches import commit_conf
from spark_jobs.protocol.quarantine import quarantine_of
from spark_jobs.protocol.secondary import belongs_to
from spark_jobs.runtime.context import JobContext
from spark_jobs.transforms.stamps import with_stamp


@dataclass(frozen=True)
class Switch:
    """Puts one table of a rebuild in its place; the caller holds the lease of the table.

    Attributes:
        spec: the table's spec.
        build: where it was built.
    """

    spec: AnySpec
    build: StagedBuild

    def run(self) -> Winner:
        """Write down what is known of the new rows, commit, settle by the log, and close the batch.

        Raises:
            ConflictError: somebody else committed meanwhile; nothing was switched, and the rebuild can be resumed.
        """
        context, table = self.build.context, self.spec.table
        path, ledger = context.paths.table(table), context.records.ledger
        position = resolve(path, Stream(table), ledger)
        intent, expected = self._intent(position), latest_version(path) + 1
        ledger.record_intent(intent)
        self._write_beside(intent)
        records = context.records
        records.quarantine.carry_over(table, position.table_id, intent.table_id, self.build.rebuild.id)
        self._write_down(intent, position.table_id, expected)
        winner = self._commit(intent, position)
        if winner.version != expected:
            self._write_down(intent, position.table_id, winner.version)
        close_replacement(context, winner)
        return winner

    @property
    def _staged_version(self) -> int:
        certified = self.build.records.gates.certified(self.spec.table)
        if certified is None:
            raise MillraceError(f"{self.spec.table}: what was built anew is not certified")
        return certified

    def _intent(self, position: StreamPosition) -> Intent:
        """The batch that has read all that the staged ones have."""
        table, staged = self.spec.table, self.build.records
        of_staged = table_id(self.build.paths.table(table))
        last = resolve(self.build.paths.table(table), Stream(table), staged.ledger).last
        if last is None:
            raise MillraceError(f"{table}: what was built anew has no batch")
        return Intent(
            table=table,
            table_id=of_staged,
            stream=Stream(table).name,
            batch_seq=position.next_seq,
            token=self.build.rebuild.token(table),
            interval_start=last.intent.interval_start,
            interval_end=last.intent.interval_end,
            run_id=self.build.context.args.run_id,
            spec_hash=last.intent.spec_hash,
            sources=self._sources(last.intent.sources),
        )

    def _sources(self, last: BatchSources) -> BatchSources:
        return BatchSources(
            ranges={source: (None, upto) for source, (_, upto) in last.ranges.items()},
            source_ids=last.source_ids,
            snapshot_at=last.snapshot_at,
            rebuild=self.build.rebuild.id,
        )

    def _write_beside(self, intent: Intent) -> None:
        """Bring refused rows and deleted keys to where the table in use will look for them."""
        context, staged, table = self.build.context, self.build.paths, intent.table
        if is_table(staged.quarantine(table)):
            ensure_table(context.open_session, context.paths.quarantine(table), quarantine_of(table, staged).shape)
            with self._session() as session:
                rows = _newest(session, staged.quarantine(table)).where(belongs_to(intent.table_id))
                replace_where(rows, context.paths.quarantine(table), belongs_to(intent.table_id))
        if isinstance(self.spec, SilverSpec) and is_table(staged.tombstones(table, intent.table_id)):
            target = tombstones_of(self.spec, context.paths, intent.table_id)
            ensure_table(context.open_session, target.path, target.shape)
            with self._session() as session:
                rows = with_stamp(_newest(session, staged.tombstones(table, intent.table_id)), intent)
                rows.select(*target.shape.columns).write.format("delta").mode("overwrite").save(spark_path(target.path))

    def _write_down(self, intent: Intent, earlier: str, version: int) -> None:
        """Write down what is known of the rows, under the id and as of the version that they will have."""
        records, staged, table = self.build.context.records, self.build.records, intent.table
        key = self.build.rebuild.id
        if isinstance(self.spec, BronzeSpec):
            take_over_loads(records.paths, self.build.paths, table, (earlier, intent.table_id), version)
            known = {column.name for column in records.new_columns.of(table, ColumnState.APPROVED)}
            new = [one for one in staged.new_columns.of(table, ColumnState.APPROVED) if one.name not in known]
            for one in new:
                said = {"run_id": one.run_id, "said_by": one.said_by}
                records.new_columns.record(ColumnState.APPROVED, table, [one.name], **said)
        records.quarantine.take_over(staged.quarantine, table, intent.table_id, key)
        records.specs.record(self.spec, intent.table_id)
        passed = [one.result for one in staged.gates.results(table) if one.result.passed]
        certificate = {"version": version, "batches": (f"{intent.stream}/{intent.batch_seq}",)}
        records.gates.record(passed[-1].model_copy(update=certificate))
        records.ledger.record_committed([Winner(intent, version)])

    def _commit(self, intent: Intent, position: StreamPosition) -> Winner:
        staged = self.build.paths.table(intent.table)
        return replace_rows(self.build.context, intent, position, staged, self._staged_version)

    def _session(self) -> Any:
        return self.build.context.open_session(
            maintenance_conf(self.build.context, spec_hash=self.build.context.spec.spec_hash)
        )


def _newest(session: SparkSession, path: Any) -> Any:
    return read_version(session, path, open_table(path).version())


def close_replacement(context: JobContext, winner: Winner) -> None:
    """Count the rows, and close the batch.

    Raises:
        ConservationError: the counts do not agree with the table.
    """
    path = context.paths.table(winner.intent.table)
    rows = rows_of_rebuild(path, winner)
    check_conservation(path, winner, rows)
    context.records.ledger.record_closed(winner, rows)


def replace_rows(
    context: JobContext, intent: Intent, position: StreamPosition, source: LakePath, version: int
) -> Winner:
    """Put a version of a table in the place of the one in use, in one commit; settled by the log alone.

    Args:
        context: of the job.
        intent: the batch that the commit is.
        position: where the stream of the table in use stands.
        source: the folder of the table whose rows, columns, partitions and properties it gets.
        version: its version.

    Raises:
        ConflictError: somebody else committed meanwhile; nothing was replaced.
    """
    path, metadata = context.paths.table(intent.table), open_table(source, version=version).metadata()
    properties, failure = {**metadata.configuration, TABLE_ID: intent.table_id}, None
    try:
        with context.open_session(commit_conf(intent)) as session:
            rows = read_version(session, source, version)
            with_stamp(rows, intent).select(*rows.columns).createOrReplaceTempView("replacing")
            comment = metadata.description or ""
            session.sql(replace_statement(path, "replacing", metadata.partition_columns, properties, comment)).collect()
    except Exception as error:  # noqa: BLE001  settled below: an exception does not mean that nothing was committed
        failure = error
    winner = winner_at(path, intent.app_id, intent.batch_seq, after=position.version)
    if winner is None and failure is not None:
        raise failure
    if winner is None or winner.token != intent.token:
        msg = (
            f"{intent.table}: somebody else committed while the other rows were about to take their place\n"
            f"Nothing was replaced. Ask for it again: lakehouse rebuild {intent.table}"
        )
        raise ConflictError(msg) from failure
    return winner
