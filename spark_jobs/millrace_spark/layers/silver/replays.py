"""The quarantined rows that replays read into silver: bronze rows as they were received, or as a person fixed them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from millrace.contracts.counted import counted
from millrace.contracts.job.report import RowCounts
from millrace.contracts.job.requests import RowFilter
from millrace.contracts.row_status import RowStatus
from millrace.contracts.spec.bronze_sources import SOURCE_FILE
from millrace.contracts.spec.change_data import SOURCE_TABLE
from millrace.contracts.spec.table_spec import SilverSpec
from millrace.control.ledger.replaced_loads import replaced_loads
from millrace.control.log.batch import BatchSources, Intent, PinnedTable, StreamPosition, Winner, new_token
from millrace.control.log.delta_log import latest_version
from millrace.control.planning.source_ranges import pin_references
from millrace.control.quarantine.events import Decision, ReceivedRow
from millrace.control.quarantine.stored_rows import WHOLE, QuarantinedRow, StoredRows
from millrace.control.quarantine.waits import record_tried, rows_to_try
from millrace_spark.delta_io.reads import read_version
from millrace_spark.layers.received_rows import MAX_ROWS, received_frame, record_outcome, refused_again
from millrace_spark.layers.silver.references import References
from millrace_spark.quality.rules.row_clock import CLOCK
from millrace_spark.runtime.context import JobContext
from millrace_spark.transforms.received import ROW_ID, is_received
from millrace_spark.transforms.refusals import is_accepted
from millrace_spark.transforms.silver.origins import with_source_table
from millrace_spark.transforms.silver.silver import fixed_rows, without_quarantining


def source_of(received: str) -> str:
    """Return the source of a row of a table with a list of sources, from the row as it was received."""
    return str(json.loads(received)[SOURCE_TABLE])


class SilverReplays:
    """Read the rows that replays add to a silver table."""

    def __init__(self, context: JobContext, spec: SilverSpec) -> None:
        self._context = context
        self._spec = spec
        self._references = References(context, spec)

    def by_schema(
        self, session: SparkSession, rows: Sequence[ReceivedRow]
    ) -> list[tuple[StructType, Sequence[ReceivedRow]]]:
        """Return the rows by source, each with the columns of its rows."""
        return [(self.received_schema(session, table), of_table) for table, of_table in self._by_source(rows).items()]

    def received_schema(self, session: SparkSession, table: str) -> StructType:
        """Return the columns of a row of a source as silver receives it."""
        path = self._context.paths.table(table)
        bronze = with_source_table(
            read_version(session, path, latest_version(path)), table if self._spec.sources else None
        )
        return StructType([field for field in bronze.schema.fields if is_received(field.name)])

    def check_received(
        self,
        session: SparkSession,
        rows: Sequence[ReceivedRow],
        pinned: Mapping[str, PinnedTable] | None = None,
        at: datetime | None = None,
    ) -> DataFrame:
        """Return the rows with their types and refusals, as if they came from bronze.

        Args:
            session: any session.
            rows: the rows.
            pinned: the versions that the references look into; by default the certified ones.
            at: the time as of which rules judge them; by default now.
        """
        if pinned is None:
            pinned = pin_references(self._spec, self._context.paths, self._context.ops.gates)
        return self._references.judge(session, self._checked(self._frames(session, rows), at, self._spec), pinned)

    def read_replay(self, session: SparkSession, intent: Intent) -> DataFrame:
        """Return the rows of a replay, with their types and refusals."""
        rows = self._context.ops.quarantine.pinned_rows(intent.table, intent.sources.replay)
        return self.check_received(session, rows, intent.sources.references, intent.planned_at)

    def _frames(self, session: SparkSession, rows: Sequence[ReceivedRow]) -> dict[str, DataFrame]:
        """Return source -> its rows as they were received."""
        return {
            table: received_frame(session, of_table, self.received_schema(session, table))
            for table, of_table in self._by_source(rows).items()
        }

    def _checked(self, frames: Mapping[str, DataFrame], at: datetime | None, by: SilverSpec) -> DataFrame:
        clock = F.lit(at or self._context.now()).cast("timestamp")
        of_sources = ((rows.withColumn(CLOCK, clock), by.of_source(table)) for table, rows in frames.items())
        checked = (fixed_rows(rows, spec) for rows, spec in of_sources)
        return reduce(DataFrame.unionByName, checked)

    def _by_source(self, rows: Sequence[ReceivedRow]) -> dict[str, list[ReceivedRow]]:
        """Return source -> its rows; for no rows the first source."""
        first, *others = self._spec.source_tables
        by_source: dict[str, list[ReceivedRow]] = {first: []} if not others or not rows else {}
        for row in rows:
            table = source_of(row.received) if self._spec.sources else first
            by_source.setdefault(table, []).append(row)
        return by_source

    def settle(self, winner: Winner, counts: RowCounts) -> None:
        """Record the outcome of each row of a committed replay.

        Raises:
            ConservationError: the numbers of pinned, tried and refused rows contradict one another.
        """
        with self._context.open_session({}) as session:
            rows = self.read_replay(session, winner.intent)
            refused = refused_again(rows)
            # The batch also counts the earlier rows from which it computes a state again.
            read_again = counts.read - rows.count() if self._spec.builds_on_earlier else 0
        record_outcome(self._context, winner, counts, refused, read_again)

    def read_earlier(
        self, session: SparkSession, intent: Intent, still_in: Mapping[str, DataFrame] | None = None
    ) -> DataFrame | None:
        """Return the accepted rows that earlier replays added to the table; None if there are none.

        A row was accepted by the rules of its replay; the present ones may refuse it, but it is in no quarantine.

        Args:
            session: the batch's own.
            intent: the batch.
            still_in: source -> its rows as the batch reads them; replayed rows of deliveries that it does not contain
                any more are left out.
        """
        of_batch = intent.table, intent.table_id, intent.sources.replay, intent.batch_seq
        replayed = self._context.ops.quarantine.replayed_rows(*of_batch)
        if self._spec.sources:  # Other streams have the rows of their own sources.
            replayed = [row for row in replayed if source_of(row.received) in self._spec.source_tables]
        if not replayed:
            return None
        frames = {
            table: self._still_in(session, intent.sources, table, rows, still_in[table] if still_in else None)
            for table, rows in self._by_source(replayed).items()
        }
        return self._checked(frames, intent.planned_at, without_quarantining(self._spec)).where(is_accepted())

    def _still_in(
        self,
        session: SparkSession,
        sources: BatchSources,
        table: str,
        rows: Sequence[ReceivedRow],
        bronze: DataFrame | None,
    ) -> DataFrame:
        """Return replayed rows of a source; if its rows are given, those of deliveries that it contains."""
        schema = self.received_schema(session, table)
        if bronze is None or SOURCE_FILE not in schema.names:
            return received_frame(session, rows, schema)
        # A landing file can be delivered several times; a rebuild gives all that it loads the same number.
        lowest = min(number for number, _ in _loads(rows))
        rebuild = self._context.ops.ledger.history.last_rebuild(table, sources.source_ids[table], above=lowest)
        if rebuild:
            rows = self._of_present_files(sources, table, rows)
        delivered_in = F.greatest("_batch_seq", F.lit(rebuild.batch_seq if rebuild else 0)).alias("_delivered_in")
        deliveries = bronze.select(SOURCE_FILE, F.col("_batch_seq").alias("_delivered_in")).distinct()
        numbered = received_frame(session, rows, schema).select("*", delivered_in)
        return numbered.join(deliveries, [SOURCE_FILE, "_delivered_in"], "left_semi").drop("_delivered_in")

    def decided_rows(self, sources: BatchSources) -> set[str]:
        """Return the ids of the rows that somebody has decided about, or tried, without those of replaced files."""
        stored = StoredRows(self._spec.table, self._context.paths)
        rows = [row.received_row for row in stored.with_events(RowFilter(statuses=tuple(RowStatus)), WHOLE)]
        by_source = self._by_source(rows) if rows else {}
        own = {table: of_table for table, of_table in by_source.items() if table in sources.ranges}
        return {row.id for table, of_table in own.items() for row in self._of_present_files(sources, table, of_table)}

    def _of_present_files(self, sources: BatchSources, table: str, rows: Sequence[ReceivedRow]) -> list[ReceivedRow]:
        """Return the rows whose landing files have the content that they came with; rows of other sources all."""
        ledger, source_id, (_, upto) = self._context.ops.ledger, sources.source_ids[table], sources.ranges[table]
        loads = _loads(rows)
        gone = replaced_loads(ledger, table, source_id, loads, upto)
        return [row for row, load in zip(rows, loads, strict=True) if load not in gone]


def _loads(rows: Sequence[ReceivedRow]) -> list[tuple[int, str]]:
    """Return for each row the number of the batch that loaded it, and its landing file; empty for none."""
    fields = [json.loads(row.received) for row in rows]
    return [(of_row.get("_batch_seq") or 0, of_row.get(SOURCE_FILE) or "") for of_row in fields]


class WaitingReplays:
    """The rows in the quarantine of a silver table that wait for the values of another table."""

    def __init__(self, context: JobContext, spec: SilverSpec, replays: SilverReplays) -> None:
        self._context = context
        self._spec = spec
        self._replays = replays

    def plan(self, position: StreamPosition, sources: BatchSources) -> BatchSources | None:
        """Pin the waiting rows that pass with the references of `sources`; None if no row passes.

        Only these rows are replayed: else each new version of the other table would try all waiting rows in a batch.
        """
        context, spec, pinned = self._context, self._spec, sources.references
        waiting = rows_to_try(spec, position, pinned, context.paths, context.now(), WHOLE)
        if not waiting:
            return None
        passing = self._passing(waiting, sources)
        if not passing:
            record_tried(spec, position, pinned, context.paths)
            return None
        replay, tables = new_token(), " and ".join(f"{table} version {pin.version}" for table, pin in pinned.items())
        decision = Decision("", f"looked into {tables}", context.args.run_id)
        context.ops.quarantine.pin(
            spec.table, position.table_id, replay, [row.received_row for row in passing], decision
        )
        context.notes.append(f"{spec.table}: replays {counted(len(passing), 'row')} that waited for {tables}")
        return position.last_sources.at_same_position(replay=replay, replayed_rows=len(passing), references=pinned)

    def _passing(self, waiting: list[QuarantinedRow], sources: BatchSources) -> list[QuarantinedRow]:
        """Return the first `MAX_ROWS` rows that pass all rules."""
        passing: list[QuarantinedRow] = []
        with self._context.reading_session({}) as session:
            for at in range(0, len(waiting), MAX_ROWS):
                some = waiting[at : at + MAX_ROWS]
                received = [row.received_row for row in some]
                checked = self._replays.check_received(session, received, sources.references)
                accepted = {row[ROW_ID] for row in checked.where(is_accepted()).select(ROW_ID).collect()}
                passing += [row for row in some if row.id in accepted]
                if len(passing) >= MAX_ROWS:
                    break
        return passing[:MAX_ROWS]
