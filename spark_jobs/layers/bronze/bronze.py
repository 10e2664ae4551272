"""Bronze: what a source delivered, appended once each, as received."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from include.contracts.job.findings import Findings, RescuedValues, merge_findings
from include.contracts.job.report import RowCounts
from include.contracts.lake_path import LakePath
from include.contracts.spec.table_spec import BronzeSpec
from include.control.gates.conservation import rows_of_rebuild
from include.control.log.batch import Intent, StreamPosition, Winner
from include.control.log.delta_log import committed_at, read_commit
from include.control.quarantine.events import ReceivedRow
from spark_jobs.delta_io.landing_reads import SOURCE_FILE
from spark_jobs.delta_io.observed import observed
from spark_jobs.delta_io.row_writes import append, one_of, replace_where, replaced_rows
from spark_jobs.delta_io.statistics import statistics_of
from spark_jobs.delta_io.tables import TableShape, shape_properties
from spark_jobs.layers.bronze.column_drift import ColumnDrift
from spark_jobs.layers.bronze.file_rows import lacking_files
from spark_jobs.layers.bronze.records import BronzeRecords
from spark_jobs.layers.bronze.rescued_fields import rescued_fields
from spark_jobs.layers.own_table import ensure_own_table, require_fitting_table
from spark_jobs.layers.received_rows import received_frame, record_outcome, refused_again
from spark_jobs.layers.refused import Dropped, dropped_by_reason, dropped_rows, quarantined_by_reason
from spark_jobs.protocol.batches import BatchPlan, Closing
from spark_jobs.protocol.quarantine import QuarantineWrite, quarantine_rows
from spark_jobs.quality.rules.row_rules import refusals
from spark_jobs.runtime.context import JobContext
from spark_jobs.transforms.received import RECEIVED, as_received, is_received, with_row_id
from spark_jobs.transforms.records import CORRUPT, RESCUED, is_no_text
from spark_jobs.transforms.refusals import (
    is_accepted,
    is_quarantined,
    missing_values,
    no_refusal,
    reasons,
    refusal_when,
    row_counts,
    with_refusals,
)
from spark_jobs.transforms.stamps import STAMP_COLUMNS, with_stamp

INTERVAL_START = "_interval_start"
_MALFORMED = "malformed record"
_BYTES_OF = {"json": "UTF-8 text", "csv": "UTF-8 text"}


def bronze_shape(spec: BronzeSpec, origin: Mapping[str, str]) -> TableShape:
    """The bronze table of a spec: its columns, what did not fit them, and where each row came from."""
    declared = {name: column.type for name, column in spec.columns.items()}
    own = {RESCUED: "string", **origin, INTERVAL_START: "timestamp", "_ingested_at": "timestamp"}
    columns = {**declared, **own, **STAMP_COLUMNS}
    # Those of every column are a fifth of a large load, and nobody looks for received values in bronze;
    # those of what was rescued are its count.
    statistics = statistics_of((*origin, RESCUED, INTERVAL_START, *spec.zorder_by), columns, spec.partitioned_by)
    return TableShape(
        columns=columns,
        comments={name: column.description for name, column in spec.columns.items()},
        partitioned_by=spec.partitioned_by,
        properties={**statistics, **shape_properties(spec)},
        comment=spec.description,
    )


class BronzeIngest:
    """The `BatchWork` of a bronze table.

    Attributes:
        spec: the table's spec, with the columns that drift has brought.
    """

    def __init__(self, context: JobContext, declared: BronzeSpec, records: BronzeRecords) -> None:
        self._context = context
        self._declared = declared
        self.spec = declared
        self.records = records
        self.drift = ColumnDrift(context, declared)
        self._observed: dict[str, Observation | None] = {}

    def ensure_table(self) -> None:
        """See to it that there is a table, with every column that drift has brought by now.

        Raises:
            BadInputError: the table on disk does not fit the spec.
        """
        self.spec = self.drift.effective_spec()
        require_fitting_table(self._context, self._declared)
        ensure_own_table(self._context, bronze_shape(self.spec, self.records.origin))

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        """What of the source no batch has loaded yet."""
        return self.records.plan(position)

    def write(self, session: SparkSession, intent: Intent, plan: BatchPlan) -> None:
        """Append the accepted records of the plan, or put them in the place of those of the same files.

        Raises:
            UnreadableFileError: Spark could not read one of its files to the end, or it does not fit a strict spec.
            NewColumnsError: records bring fields that become columns first.
            BadInputError: a Kafka message does not fit a strict spec.
        """
        observation = None if self._refuses_nothing(plan) else Observation()
        judged_records = self._judged(session, plan)
        records = judged_records.observe(observation, *row_counts()) if observation else judged_records
        own = {} if intent.sources.replay else self._of_this_batch(intent)
        kept = records.where(is_accepted()).withColumns(
            {**own, "_ingested_at": F.lit(self._context.now()).cast("timestamp")}
        )
        rows = with_stamp(kept, intent).select(*bronze_shape(self.spec, self.records.origin).columns)
        path = self._context.paths.table(self.spec.table)
        try:
            if plan.sources.replaces_files:
                replace_where(rows, path, one_of(SOURCE_FILE, (file.path for file in plan.files)))
            else:
                append(rows, path)
        except Exception as error:
            self.drift.adopt(error, self.spec, judged_records.where(is_accepted()))
            self.records.blame(error, plan)
            raise
        self._observed[intent.token] = observation

    def close(self, winner: Winner) -> Closing:
        """Quarantine what was refused, and count each record's fate."""
        if winner.intent.sources.rebuild:
            return Closing(rows_of_rebuild(self._context.paths.table(self.spec.table), winner))
        plan = BatchPlan(winner.intent.sources, self._context.records.ledger.files_of(winner.intent))
        counts = self._counts(winner, plan)
        replaced = [file.path for file in plan.files] if plan.sources.replaces_files else []
        quarantine = QuarantineWrite(self._context.paths, winner, counts["quarantined"], replaced)
        if winner.intent.sources.replay:
            return self._close_replay(winner, plan, counts)
        quarantine.run(self._context.open_session, lambda session: self._refused(session, winner, plan))
        kinds = {name: column.type for name, column in self.spec.columns.items()}
        rescued = rescued_fields(self._added(winner), winner, kinds)
        self.drift.propose(self.spec, rescued)
        left_out = self._left_out(plan) if counts["dropped"] else []
        rows_of_file = self.records.closed(winner, plan, counts, left_out)
        found = self._findings(winner, counts, left_out, rescued)
        lacking = lacking_files(plan.files, rows_of_file, self._declared.columns)
        return Closing(self._fates(winner, counts), rows_of_file, merge_findings([found, Findings(lacking=lacking)]))

    def received_schema(self, session: SparkSession) -> StructType:
        """The columns of a record before it is judged; a record that could not be parsed is in `_corrupt_record`."""
        columns = bronze_shape(self.spec, self.records.origin).columns
        wanted = [name for name in columns if is_received(name) and name not in STAMP_COLUMNS]
        kinds = {**{name: columns[name] for name in wanted}, CORRUPT: "string"}
        return session.createDataFrame([], ", ".join(f"`{name}` {kind}" for name, kind in kinds.items())).schema

    def judge_received(self, session: SparkSession, rows: Sequence[ReceivedRow]) -> DataFrame:
        """The records as they were received, or mended, judged like those that a source delivers."""
        return self._judge(received_frame(session, rows, self.received_schema(session)))

    def _of_this_batch(self, intent: Intent) -> dict[str, Column]:
        """What a replayed record has from when it was delivered, and any other gets now."""
        return {
            RESCUED: self.drift.rescued(self.spec, self.records.source()),
            "_interval_start": F.lit(intent.interval_start).cast("timestamp"),
        }

    def _close_replay(self, winner: Winner, plan: BatchPlan, counts: Mapping[str, int]) -> Closing:
        """Record what became of each row, once the commit is known to hold as many as were accepted.

        Raises:
            ConservationError: it does not.
        """
        fates = self._fates(winner, counts)
        with self._context.open_session({}) as session:
            refused = refused_again(self._judged(session, plan))
        record_outcome(self._context, winner, fates, refused)
        return Closing(fates)

    def _fates(self, winner: Winner, counts: Mapping[str, int]) -> RowCounts:
        written, removed = replaced_rows(self._context.paths.table(self.spec.table), winner.version)
        return RowCounts(
            read=counts["read"],
            applied=written,
            quarantined=counts["quarantined"],
            dropped=counts["dropped"],
            inserted=written,
            deleted=removed,
        )

    def _left_out(self, plan: BatchPlan) -> list[Dropped]:
        with self._context.open_session({}) as session:
            return dropped_rows(self._judged(session, plan), self.records.source())

    def _added(self, winner: Winner) -> list[LakePath]:
        """The data files that a batch has added to the table."""
        path = self._context.paths.table(self.spec.table)
        commit = read_commit(path, winner.version)
        return [path / name for name in commit.added] if commit else []

    def _findings(
        self,
        winner: Winner,
        counts: Mapping[str, int],
        left_out: Sequence[Dropped],
        rescued: tuple[RescuedValues, ...],
    ) -> Findings:
        path = self._context.paths.quarantine(self.spec.table)
        quarantined = quarantined_by_reason(path, winner) if counts["quarantined"] else ()
        return Findings(refused=(*quarantined, *dropped_by_reason(left_out)), rescued=rescued)

    def _judged(self, session: SparkSession, plan: BatchPlan) -> DataFrame:
        if replay := plan.sources.replay:
            return self.judge_received(session, self._context.records.quarantine.pinned(self.spec.table, replay))
        return self._judge(self.records.read(session, self.spec, plan))

    def _judge(self, records: DataFrame) -> DataFrame:
        required = tuple(name for name, column in self.spec.columns.items() if not column.nullable)
        malformed = F.col(CORRUPT).isNotNull()
        no_text, kind = is_no_text(F.col(CORRUPT)), self.spec.source.format
        unparsed = (
            refusal_when(malformed & ~no_text, _MALFORMED, f"it cannot be parsed as {kind}"),
            refusal_when(no_text, _MALFORMED, f"its bytes are no {_BYTES_OF.get(kind, kind)}, and are shown in base64"),
        )
        of_values = (missing_values(required), refusals(self.spec.row_rules))
        parts = (F.when(malformed | self.records.exempt(), no_refusal()).otherwise(part) for part in of_values)
        return with_refusals(records, self.spec.row_rules, *unparsed, *parts)

    def _refuses_nothing(self, plan: BatchPlan) -> bool:
        """Whether nobody has to look at each record: no rule can refuse one, and the files say how many they hold."""
        has_rules = self.spec.row_rules or not all(column.nullable for column in self.spec.columns.values())
        return self.records.state_their_rows and not has_rules and not plan.sources.replay

    def _counts(self, winner: Winner, plan: BatchPlan) -> dict[str, int]:
        """Records read, quarantined and dropped: observed during the write, or counted again after a crash."""
        if winner.token not in self._observed and not plan.sources.replay:
            self.records.require_as_planned(plan)
        if self._refuses_nothing(plan):
            return {"read": self.records.stated_rows(plan), "quarantined": 0, "dropped": 0}
        observation = self._observed.get(winner.token)
        if observation and (seen := observed(observation)):
            return seen
        with self._context.open_session({}) as session:
            row = self._judged(session, plan).agg(*row_counts()).first()
        return row.asDict() if row else {}

    def _refused(self, session: SparkSession, winner: Winner, plan: BatchPlan) -> DataFrame:
        started = F.lit(winner.intent.interval_start).cast("timestamp")
        placed = self.records.placed(self._judged(session, plan)).withColumn(INTERVAL_START, started)
        record = F.coalesce(F.col(CORRUPT), F.to_json(F.struct(*self.spec.columns, RESCUED)))
        # A file that is delivered again, or replaced, brings other rows: the batch tells them apart.
        identity = (self.records.source(), F.col("_position"), F.lit(winner.batch_seq), record)
        refused = with_row_id(placed.where(is_quarantined()), self.spec.table, identity)
        return quarantine_rows(
            refused.withColumn(RECEIVED, as_received(self.received_schema(session).names)),
            winner,
            committed_at(self._context.paths.table(self.spec.table), winner.version),
            record=record,
            reasons=reasons(),
            source=self.records.source(),
            position=F.col("_position"),
        )
