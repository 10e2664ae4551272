"""Bronze: the records that a source delivered, as received, each of them once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from millrace.contracts.job.findings import FieldsOfOneColumn, Findings, RescuedValues, most_frequent
from millrace.contracts.job.report import RowCounts
from millrace.contracts.spec.bronze_sources import SOURCE_FILE
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.changes.table_properties import table_properties
from millrace.control.gates.conservation import rows_of_deletion, rows_of_rebuild
from millrace.control.log.batch import Intent, StreamPosition, SuppressedKeys, Winner
from millrace.control.log.streams import stream_properties
from millrace.control.quarantine.events import ReceivedRow
from millrace.control.repair.restoring import close_restore
from millrace_spark.delta_io.row_writes import append, read_observation, replace_where, replaced_rows
from millrace_spark.delta_io.tables import TableShape
from millrace_spark.layers.bronze.column_drift import ColumnDrift
from millrace_spark.layers.bronze.file_rows import added_files, lacking_files
from millrace_spark.layers.bronze.landing_records import LandingRecords
from millrace_spark.layers.bronze.lost_records import ReadAgain, counts_with_lost
from millrace_spark.layers.bronze.rescued_fields import rescued_fields, without_samples
from millrace_spark.layers.bronze.suppressed_rows import SuppressedRows
from millrace_spark.layers.dropped import DroppedRows, dropped_by_reason, dropped_rows
from millrace_spark.layers.own_table import ensure_own_table, require_fitting_table
from millrace_spark.layers.quarantined import quarantined_by_reason
from millrace_spark.layers.received_rows import received_frame, record_outcome, refused_again
from millrace_spark.layers.streams import follow_concurrency
from millrace_spark.protocol.batches import BatchPlan, Closing
from millrace_spark.protocol.quarantine import QuarantineWrite, quarantine_rows
from millrace_spark.quality.rules.row_rules import refusals
from millrace_spark.runtime.context import JobContext
from millrace_spark.transforms.received import RECEIVED, as_received, is_received, with_row_id
from millrace_spark.transforms.record_parts import record_columns
from millrace_spark.transforms.records import CORRUPT, RESCUED
from millrace_spark.transforms.refusals import (
    clock_of,
    is_accepted,
    is_quarantined,
    missing_values,
    no_refusal,
    reasons,
    row_counts,
    unparsed,
    with_refusals,
)
from millrace_spark.transforms.sql_texts import in_texts
from millrace_spark.transforms.stamps import STAMP_COLUMNS, with_stamp
from millrace_spark.transforms.values.unstorable import refused_partition_texts, refused_values

INTERVAL_START = "_interval_start"


def bronze_shape(spec: BronzeSpec) -> TableShape:
    """Return the shape of a bronze table: its columns, the values that fit no column, and the origin of each row."""
    declared = {name: column.type for name, column in spec.columns.items()}
    own = {
        RESCUED: "string",
        **spec.source.origin_columns,
        INTERVAL_START: "timestamp",
        "_ingested_at": "timestamp",
    }
    return TableShape(
        columns={**declared, **own, **STAMP_COLUMNS},
        comments={name: column.description for name, column in spec.columns.items()},
        partitioned_by=spec.partitioned_by,
        properties=table_properties(spec),
        first_properties=stream_properties(spec),
        comment=spec.description,
    )


class BronzeIngest:
    """The `BatchWork` of a bronze table.

    Attributes:
        spec: the table's spec, with the columns that drift has added.
        records: the records of its source.
        drift: handles the values that fit no declared column.
        suppressed: leaves out the records of erased subjects.
    """

    def __init__(self, context: JobContext, declared: BronzeSpec) -> None:
        self._context = context
        self._declared = declared
        self.spec = declared
        if declared.reads_kafka:
            from millrace_spark.layers.bronze.kafka_records import KafkaRecords  # needs the extra `kafka`

            self.records: KafkaRecords | LandingRecords = KafkaRecords(context, declared)
        else:
            self.records = LandingRecords(context, declared)
        self.drift = ColumnDrift(context, declared)
        self.suppressed = SuppressedRows(context.paths, declared)
        self._observations: dict[str, Observation | None] = {}

    def ensure_table(self) -> None:
        """Create the table, or make it follow its spec: the columns that drift has added to that, and the streams.

        Raises:
            BadInputError: the table on disk does not fit the spec.
            ConflictError: other writers held the table for too long, or won too often.
        """
        self.spec = self.drift.effective_spec()
        require_fitting_table(self._context, self._declared)
        follow_concurrency(self._context, lambda _: self)
        ensure_own_table(self._context, bronze_shape(self.spec))

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        """Plan to load what no batch has loaded yet."""
        plan = self.records.plan(position)
        if plan and (suppressed := self.suppressed.pin()):
            return replace(plan, sources=plan.sources.model_copy(update={"suppressed": suppressed}))
        return plan

    def write(self, session: SparkSession, intent: Intent, plan: BatchPlan) -> None:
        """Append the accepted records of the plan, or replace the rows of the same files by them.

        Raises:
            UnreadableFileError: Spark could not read a file of the plan to its end, or it does not fit a strict spec.
            NewColumnsError: records have fields that must become columns first.
            BadInputError: a Kafka message does not fit a strict spec.
        """
        observation = None if self._accepts_all(plan) else Observation()
        try:
            checked = self._read_checked(session, plan, intent)
        except Exception as error:
            self.records.blame(error, plan, self.spec)
            raise
        records = checked.observe(observation, *row_counts()) if observation else checked
        own = {"_ingested_at": F.lit(self._time_of(intent)).cast("timestamp")}
        if not intent.sources.replay:  # A replayed record has these columns from its delivery.
            own[RESCUED] = self.drift.rescued(self.spec, self.records.source())
            own[INTERVAL_START] = F.lit(intent.interval_start).cast("timestamp")
        accepted = records.where(is_accepted()).withColumns(own)
        rows = with_stamp(accepted, intent).select(*bronze_shape(self.spec).columns)
        path = self._context.paths.table(self.spec.table)
        try:
            if plan.sources.replaces_files:
                replace_where(rows, path, in_texts(f"`{SOURCE_FILE}`", (file.path for file in plan.files)))
            else:
                append(rows, path)
        except Exception as error:
            self.drift.adopt(error, self.spec, checked.where(is_accepted()))
            self.records.blame(error, plan, self.spec)
            raise
        self._observations[intent.token] = observation

    def close(self, winner: Winner) -> Closing:
        """Write the quarantine, or record the outcome of each row of a replay, and count the records.

        Raises:
            ConservationError: the commit of a replay does not have as many rows as were accepted.
        """
        sources = winner.intent.sources
        if sources.restores is not None:
            return Closing(close_restore(winner, self._context.ops), quarantine_grew=None)
        if sources.deletes:
            return Closing(rows_of_deletion(self._context.paths.table(self.spec.table), winner))
        if not (sources.files or sources.offsets or sources.replay or sources.rebuild):
            return Closing(RowCounts())  # it has only taken a number
        if sources.rebuild:
            rows = rows_of_rebuild(self._context.paths.table(self.spec.table), winner)
            return Closing(rows, quarantine_grew=None)
        planned = self._context.as_planned(winner.intent)
        if planned is not self._context:
            earlier = BronzeIngest(planned, planned.spec)  # type: ignore[arg-type]
            earlier.spec = earlier.drift.effective_spec()
            return earlier.close(winner)
        whole = BatchPlan(winner.intent.sources, self._context.ops.ledger.files_of(winner.intent))
        if winner.token in self._observations or sources.replay:
            return self._close(winner, whole, ReadAgain(whole))
        with self.records.reading_again(winner, whole, partial(self._read_refused, winner)) as again:
            return self._close(winner, whole, again)

    def _close(self, winner: Winner, whole: BatchPlan, again: ReadAgain) -> Closing:
        """Close a batch by all of its records, or by those of them that can be read again."""
        plan = again.plan
        counts = self._count_records(winner, plan)
        if plan != whole:
            counts = counts_with_lost(self._context, winner, again, counts)
        rows = self._row_counts(winner, counts)
        if winner.intent.sources.replay:
            with self._context.open_session({}) as session:
                refused = refused_again(self._read_checked(session, plan, winner.intent))
            record_outcome(self._context, winner, rows, refused)
            return Closing(rows, quarantine_grew=None)
        replaced = [file.path for file in whole.files] if plan.sources.replaces_files else []
        quarantine = QuarantineWrite(self._context.paths, winner, counts["quarantined"], replaced)
        refused_rows = partial(self._refused_rows, winner, plan)
        grew = quarantine.run(self._context.open_session, refused_rows)
        rescued, repeated = self._rescued_fields(winner) if again.finds_rescued else ((), ())
        self.drift.propose(self.spec, rescued)
        dropped: list[DroppedRows] = []
        if counts["dropped"]:
            with self._context.open_session({}) as session:
                dropped = dropped_rows(self._read_checked(session, plan, winner.intent), self.records.source())
        rows_of_file = self.records.close_batch(winner, whole, counts, dropped)
        path = self._context.paths.quarantine(self.spec.table)
        quarantined = quarantined_by_reason(path, winner, counts["quarantined"]) if counts["quarantined"] else ()
        rescued, further_fields = most_frequent(rescued)
        findings = Findings(
            refused=(*quarantined, *dropped_by_reason(dropped)),
            rescued=rescued,
            repeated=repeated,
            further_fields=further_fields,
            lacking=lacking_files(whole.files, rows_of_file, self._declared),
        )
        return Closing(rows, rows_of_file, findings, grew)

    def _rescued_fields(self, winner: Winner) -> tuple[tuple[RescuedValues, ...], tuple[FieldsOfOneColumn, ...]]:
        added = added_files(self._context.paths.table(self.spec.table), winner)
        any_case = self.spec.source.field_names == "any_case"
        rescued, repeated = rescued_fields(added, winner, record_columns(self.spec), any_case)
        return without_samples(rescued, repeated) if self._context.restricted(self.spec.table) else (rescued, repeated)

    def by_schema(
        self, session: SparkSession, rows: Sequence[ReceivedRow]
    ) -> list[tuple[StructType, Sequence[ReceivedRow]]]:
        """Return the rows with the columns that they have."""
        return [(self.received_schema(session), rows)]

    def received_schema(self, session: SparkSession) -> StructType:
        """Return the columns of a record before it is checked; `_corrupt_record` has a record that cannot be parsed."""
        columns = bronze_shape(self.spec).columns
        received = [name for name in columns if is_received(name) and name not in STAMP_COLUMNS]
        kinds = {**{name: columns[name] for name in received}, CORRUPT: "string"}
        return session.createDataFrame([], ", ".join(f"`{name}` {kind}" for name, kind in kinds.items())).schema

    def check_received(self, session: SparkSession, rows: Sequence[ReceivedRow]) -> DataFrame:
        """Return the received or fixed records with their refusals, as if the source delivered them now."""
        return self._check_received(session, rows, self._context.now(), self.suppressed.pin())

    def _check_received(
        self, session: SparkSession, rows: Sequence[ReceivedRow], at: datetime, suppressed: SuppressedKeys | None
    ) -> DataFrame:
        records = received_frame(session, rows, self.received_schema(session))
        # An earlier version kept refused rows with values that no new record has.
        kinds = {name: column.type for name, column in self.spec.columns.items()}
        return self.suppressed.drop(self._check(records, at, *refused_values(kinds)), suppressed)

    def _row_counts(self, winner: Winner, counts: Mapping[str, int]) -> RowCounts:
        written, removed = replaced_rows(self._context.paths.table(self.spec.table), winner.version)
        return RowCounts(
            read=counts["read"],
            applied=written,
            quarantined=counts["quarantined"],
            dropped=counts["dropped"],
            inserted=written,
            deleted=removed,
        )

    def _read_checked(self, session: SparkSession, plan: BatchPlan, intent: Intent) -> DataFrame:
        """Read the records of the plan, with their refusals."""
        suppressed, at = plan.sources.suppressed, self._time_of(intent)
        if replay := plan.sources.replay:
            rows = self._context.ops.quarantine.pinned_rows(self.spec.table, replay)
            return self._check_received(session, rows, at, suppressed)
        return self.suppressed.drop(self._check(self.records.read(session, self.spec, plan), at), suppressed)

    def _time_of(self, intent: Intent) -> datetime:
        return intent.planned_at or self._context.now()

    def _check(self, records: DataFrame, at: datetime, *more: Column) -> DataFrame:
        """Add the refusals of each record, as of a time; `more` are further ones."""
        required = tuple(name for name, column in self.spec.columns.items() if not column.nullable)
        malformed = F.col(CORRUPT).isNotNull()
        of_texts = refused_partition_texts(self._partition_texts)
        of_values = (missing_values(required), *of_texts, refusals(self.spec.row_rules), *more)
        parts = (F.when(malformed | self.records.is_exempt(), no_refusal()).otherwise(part) for part in of_values)
        records = records.select("*", *clock_of(self.spec.row_rules, F.lit(at)))
        return with_refusals(records, self.spec.row_rules, unparsed(CORRUPT, self.spec.source.format), *parts)

    def _accepts_all(self, plan: BatchPlan) -> bool:
        """Whether no rule can refuse a record, and the source states the number of records."""
        has_rules = self.spec.row_rules or not all(column.nullable for column in self.spec.columns.values())
        has_others = self._partition_texts or plan.sources.suppressed or plan.sources.replay
        return self.records.has_row_count and not (has_rules or has_others)

    @property
    def _partition_texts(self) -> list[str]:
        """The partition columns that are texts."""
        texts = {name for name, column in self.spec.columns.items() if column.type == "string"}
        return [name for name in self.spec.partitioned_by if name in texts]

    def _count_records(self, winner: Winner, plan: BatchPlan) -> dict[str, int]:
        """Return the records read, quarantined and dropped, as observed during the write, or counted after a crash."""
        if isinstance(self.records, LandingRecords) and self._accepts_all(plan):
            return {"read": self.records.row_count(plan), "quarantined": 0, "dropped": 0}
        observation = self._observations.get(winner.token)
        if observation and (counts := read_observation(observation)):
            return counts
        with self._context.open_session({}) as session:
            row = self._read_checked(session, plan, winner.intent).agg(*row_counts()).first()
        return row.asDict() if row else {}

    def _read_refused(self, winner: Winner, plan: BatchPlan) -> None:
        with self._context.open_session({}) as session:
            refused = self._refused_rows(winner, plan, session, self._context.now())
            refused.write.format("noop").mode("overwrite").save()

    def _refused_rows(self, winner: Winner, plan: BatchPlan, session: SparkSession, refused_at: datetime) -> DataFrame:
        start = F.lit(winner.intent.interval_start).cast("timestamp")
        records = self.records.with_position(self._read_checked(session, plan, winner.intent)).withColumn(
            INTERVAL_START, start
        )
        record = F.coalesce(F.col(CORRUPT), F.to_json(F.struct(*self.spec.columns, RESCUED)))
        # The batch is part of the identity: a file that is delivered again, or replaced, has other rows.
        identity = (self.records.source(), F.col("_position"), F.lit(winner.batch_seq), record)
        refused = with_row_id(records.where(is_quarantined()), self.spec.table, identity)
        return quarantine_rows(
            refused.withColumn(RECEIVED, as_received(self.received_schema(session).names)),
            winner,
            refused_at,
            record=record,
            reasons=reasons(),
            source=self.records.source(),
            position=F.col("_position"),
        )
