"""The switch: one commit replaces the table in use by the rebuilt table (ADR 26).

Before the commit, the ledger records files, certificate, refused rows and deleted keys under the table id that the
commit sets. These records count only from the commit on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, SilverSpec
from millrace.control.changes.staging import copy_loads
from millrace.control.gates.conservation import check_conservation, rows_of_rebuild
from millrace.control.ledger.new_columns import ColumnState
from millrace.control.ledger.resolution import resolve, winner_at
from millrace.control.log.batch import BatchSources, Intent, Stream, StreamPosition, Winner
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import TABLE_ID, is_table, open_table
from millrace.control.maintenance.holding import kept_log
from millrace.errors import ConflictError, MillraceError
from millrace_spark.delta_io.reads import read_version
from millrace_spark.delta_io.row_writes import replace_where
from millrace_spark.delta_io.tables import ensure_table, replace_statement, spark_path
from millrace_spark.layers.maintenance.maintenance import maintenance_conf
from millrace_spark.layers.rebuild.staged_builds import StagedBuild
from millrace_spark.layers.silver.tables import tombstones_of
from millrace_spark.protocol.batches import commit_conf
from millrace_spark.protocol.quarantine import new_ids, quarantine_of
from millrace_spark.protocol.secondary import belongs_to
from millrace_spark.runtime.context import JobContext
from millrace_spark.transforms.stamps import with_stamp


@dataclass(frozen=True)
class Switch:
    """Switch one table of a rebuild; the caller holds the lease of the table.

    Attributes:
        spec: the table's spec.
        build: the rebuilt table.
    """

    spec: AnySpec
    build: StagedBuild

    def run(self) -> Winner:
        """Record the new rows, commit them, read the result from the log, and close the batch.

        Raises:
            ConflictError: another writer committed in the meantime; nothing was switched, and the rebuild can resume.
        """
        context, table = self.build.context, self.spec.table
        path, ledger = context.paths.table(table), context.ops.ledger
        position = resolve(path, Stream(table), ledger)
        intent, expected = self._intent(position), latest_version(path) + 1
        ledger.record_intent(intent)
        self._copy_secondary_rows(intent, position.table_id)
        self._record(intent, position.table_id, expected)
        staged_version = self.build.ops.gates.certified(table)
        if staged_version is None:
            raise MillraceError(f"{table}: the rebuilt table is not certified")
        winner = replace_rows(context, intent, position, self.build.paths.table(table), staged_version)
        if winner.version != expected:
            self._record(intent, position.table_id, winner.version)
        close_replacement(context, winner)
        return winner

    def _intent(self, position: StreamPosition) -> Intent:
        """Return the intent of a batch that has read all that the batches of the rebuilt table have read."""
        table = self.spec.table
        last = resolve(self.build.paths.table(table), Stream(table), self.build.ops.ledger).last
        if last is None:
            raise MillraceError(f"{table}: the rebuilt table has no batch")
        sources = last.intent.sources
        own = {
            "table_id": self.build.id,
            "batch_seq": position.next_seq,
            "token": self.build.rebuild.token(table),
            "run_id": self.build.context.args.run_id,
            "sources": BatchSources(
                ranges={source: (None, upto) for source, (_, upto) in sources.ranges.items()},
                source_ids=sources.source_ids,
                snapshot_at=sources.snapshot_at,
                rebuild=self.build.rebuild.id,
            ),
        }
        return last.intent.model_copy(update=own)

    def _copy_secondary_rows(self, intent: Intent, old_id: str) -> None:
        """Copy refused rows, with the decisions about them, and deleted keys to those of the table in use."""
        context, staged, table = self.build.context, self.build.paths, intent.table
        if is_table(staged.quarantine(table)):
            ensure_table(context.open_session, context.paths.quarantine(table), quarantine_of(table, staged).shape)
            with self._session() as session:
                rows = _newest(session, staged.quarantine(table)).where(belongs_to(intent.table_id))
                replace_where(rows, context.paths.quarantine(table), belongs_to(intent.table_id))
                events = context.ops.quarantine
                decided = {event["row_id"] for event in events.events_of(table, old_id)}
                stored = _newest(session, context.paths.quarantine(table)).where(belongs_to(old_id))
                ids = new_ids(stored, rows, decided)
                events.copy_decisions(table, old_id, intent.table_id, ids, self.build.rebuild.id)
        if isinstance(self.spec, SilverSpec) and is_table(staged.tombstones(table, intent.table_id)):
            target = tombstones_of(self.spec, context.paths, intent.table_id)
            ensure_table(context.open_session, target.path, target.shape)
            with self._session() as session:
                rows = with_stamp(_newest(session, staged.tombstones(table, intent.table_id)), intent)
                rows.select(*target.shape.columns).write.format("delta").mode("overwrite").save(spark_path(target.path))

    def _record(self, intent: Intent, old_id: str, version: int) -> None:
        """Record files, columns, refused rows, spec, certificate and batch under the new table id and version."""
        ops, staged, table = self.build.context.ops, self.build.ops, intent.table
        if isinstance(self.spec, BronzeSpec):
            copy_loads(ops.paths, self.build.paths, table, (old_id, intent.table_id), version)
            existing = {column.name for column in ops.new_columns.of(table, ColumnState.APPROVED)}
            for column in staged.new_columns.of(table, ColumnState.APPROVED):
                if column.name not in existing:
                    approval = {"run_id": column.run_id, "said_by": column.said_by}
                    ops.new_columns.record(ColumnState.APPROVED, table, [column.name], **approval)
        ops.quarantine.copy_staged(staged.quarantine, table, intent.table_id, self.build.rebuild.id)
        ops.specs.record(self.spec, intent.table_id)
        passed = [recorded.result for recorded in staged.gates.results(table) if recorded.result.passed]
        certificate = {"version": version, "batches": (f"{intent.stream}/{intent.batch_seq}",)}
        ops.gates.record(passed[-1].model_copy(update=certificate))
        ops.ledger.record_committed([Winner(intent, version)])

    def _session(self) -> Any:
        return self.build.context.open_session(
            maintenance_conf(self.build.context, spec_hash=self.build.context.spec.spec_hash)
        )


def _newest(session: SparkSession, path: Any) -> Any:
    return read_version(session, path, open_table(path).version())


def close_replacement(context: JobContext, winner: Winner) -> None:
    """Count the rows, and close the batch. Views follow it only now: its certificate is older than its commit.

    Raises:
        ConservationError: the counts and the table differ.
    """
    path = context.paths.table(winner.intent.table)
    rows = rows_of_rebuild(path, winner)
    check_conservation(path, winner, rows)
    context.ops.ledger.record_closed(winner, rows)
    context.ops.gates.publish(winner.intent.table)


def replace_rows(
    context: JobContext, intent: Intent, position: StreamPosition, source: LakePath, version: int
) -> Winner:
    """Replace the table in use by a version of another table, in one commit; only the log decides the result.

    Args:
        context: the context of the job.
        intent: the intent of the batch that is committed.
        position: the last batch of the table's stream, with the version after which the new commit counts.
        source: the folder of the table whose rows, columns, partitions and properties replace those in use.
        version: the version of that table.

    Raises:
        ConflictError: another writer committed in the meantime; nothing was replaced.
    """
    path, metadata = context.paths.table(intent.table), open_table(source, version=version).metadata()
    in_use = open_table(path, without_files=True).metadata().configuration
    kept = kept_log(in_use, is_held=bool(context.ops.holds.on(intent.table)))
    properties = {**metadata.configuration, **kept, TABLE_ID: intent.table_id}
    failure = None
    try:
        with context.open_session(commit_conf(intent)) as session:
            rows = read_version(session, source, version)
            with_stamp(rows, intent).select(*rows.columns).createOrReplaceTempView("replacing")
            comment = metadata.description or ""
            session.sql(replace_statement(path, "replacing", metadata.partition_columns, properties, comment)).collect()
    except Exception as error:  # noqa: BLE001  The log decides below: after an exception, the commit may exist.
        failure = error
    winner = winner_at(path, intent.app_id, intent.batch_seq, after=position.version)
    if winner is None and failure is not None:
        raise failure
    if winner is None or winner.token != intent.token:
        raise ConflictError(
            f"{intent.table}: another writer committed before its rows were replaced",
            f"Nothing was replaced. Run it again: lakehouse rebuild {intent.table}",
        ) from failure
    return winner
