"""Bronze: the interval's new landing files, appended once each, as received."""

from __future__ import annotations

import re
from functools import cache, partial

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from include.contracts.job_report import FileRows, RowFates
from include.contracts.table_spec import BronzeSpec
from include.control.batch import BatchSources, FileFact, Intent, StreamPosition, Winner, files_digest
from include.control.delta_log import Commit, read_commit
from include.control.ingest import FilePlan, plan_files, require_as_loaded
from include.control.inspection import inspect
from include.control.landing import list_files
from include.errors import BadInputError
from spark_jobs.delta_io.batches import BatchPlan, Closing
from spark_jobs.delta_io.landing_reads import SOURCE_FILE, read_landing
from spark_jobs.delta_io.quarantine import quarantine_of, quarantine_rows
from spark_jobs.delta_io.secondary import append, write_once
from spark_jobs.delta_io.tables import TableShape, shape_properties
from spark_jobs.layers.file_rows import quarantined_of_files, rows_of_files
from spark_jobs.quality.row_rules import refusals
from spark_jobs.runtime.context import JobContext
from spark_jobs.transforms.judgement import (
    accepted,
    dropped,
    fate_counts,
    judged,
    missing_values,
    no_refusal,
    quarantined,
    reasons,
    refused_when,
)
from spark_jobs.transforms.records import CORRUPT, RESCUED, with_line_position
from spark_jobs.transforms.stamps import STAMP_COLUMNS, with_stamp

_UNREADABLE = re.compile(r"FAILED_READ_FILE[^]]*\].*?file:/*(/\S+?)\.?\s", re.DOTALL)


def bronze_shape(spec: BronzeSpec) -> TableShape:
    """The bronze table of a spec: its columns, what did not fit them, and where each row came from."""
    declared = {name: column.type for name, column in spec.columns.items()}
    own = {RESCUED: "string", "_source_file": "string", "_interval_start": "timestamp", "_ingested_at": "timestamp"}
    return TableShape(
        columns={**declared, **own, **STAMP_COLUMNS},
        comments={name: column.description for name, column in spec.columns.items()},
        partitioned_by=spec.partitioned_by,
        properties=shape_properties(spec),
        comment=spec.description,
    )


class BronzeIngest:
    """The `BatchWork` of a bronze table.

    Attributes:
        files: what the last plan found.
    """

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self.spec: BronzeSpec = context.spec  # type: ignore[assignment]
        self.files = FilePlan()
        self._landing = context.args.landing.resolve()
        # A file is read through once a run, however many batches it takes.
        self._inspected = cache(partial(inspect, landing=self._landing, spec=self.spec))
        self._unreadable: dict[str, str] = {}
        self._observed: dict[str, Observation] = {}

    def check_delivered(self) -> None:
        """Whether the interval's folder is there at all, before anything is created or started.

        Raises:
            NotReadyError: it is not.
        """
        list_files(self.spec, self._landing, self._context.args.interval)

    def file_statuses(self) -> dict[str, str]:
        """file -> `loaded`, `unfinished`, or `failed: <defect>`."""
        files = self.files
        return {
            **{file.path: "loaded" for file in (*files.loaded, *files.new)},
            **{file.path: "unfinished" for file in files.unfinished},
            **{file.path: f"failed: {file.defect}" for file in files.broken},
        }

    def broken_message(self) -> str:
        """What could not be loaded, for the person on call; the first line says what to do."""
        what = "cannot be loaded, the others are. Have them delivered again, then clear this task:"
        return self._told(self.files.broken, what)

    def unfinished_message(self) -> str:
        """Which files are still being written; the run is tried again."""
        return self._told(self.files.unfinished, "are still being written, the others are loaded. The run tries again:")

    def _told(self, files: tuple[FileFact, ...], what: str) -> str:
        every = len(files) + len(self.files.loaded) + len(self.files.new)
        lines = [f"  {file.path}: {file.defect}".removesuffix(": ") for file in files]
        return "\n".join([f"{self.spec.table}: {len(files)} of {every} files {what}", *lines])

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        """The next files of the interval that no batch has loaded yet; broken ones are recorded and left out."""
        self.files = plan_files(
            self.spec,
            self._landing,
            self._context.args.interval,
            self._context.ledger,
            position.table_id,
            self._look,
        )
        self._record_broken(position.table_id)
        new = self.files.new
        return BatchPlan(BatchSources(files=len(new), files_digest=files_digest(new)), new) if new else None

    def write(self, session: SparkSession, intent: Intent, plan: BatchPlan) -> None:
        """Append the accepted records of the plan's files.

        Raises:
            UnreadableFileError: Spark could not read one of them to its end.
        """
        observation = Observation()
        records = self._judged(session, plan.files).observe(observation, *fate_counts())
        kept = records.where(accepted()).withColumns(
            {
                "_interval_start": F.lit(intent.interval_start).cast("timestamp"),
                "_ingested_at": F.lit(self._context.now()).cast("timestamp"),
            }
        )
        rows = with_stamp(kept, intent).select(*bronze_shape(self.spec).columns)
        try:
            append(rows, self._context.paths.table(self.spec.table))
        except Exception as error:
            self._blame_file(error, plan)
            raise
        self._observed[intent.token] = observation

    def close(self, winner: Winner) -> Closing:
        """Quarantine what was refused, and count each record's fate."""
        files = self._context.ledger.files_of(winner.intent)
        counts = self._counts(winner, files)
        if counts["quarantined"]:
            table = quarantine_of(self.spec.table, self._context.paths)
            write_once(
                self._context.open_session, table, winner, lambda session: self._quarantine(session, winner, files)
            )
        written = int(self._commit(winner).metrics.get("numOutputRows", "0"))
        rows = RowFates(
            read=counts["read"],
            applied=written,
            quarantined=counts["quarantined"],
            dropped=counts["dropped"],
            inserted=written,
        )
        return Closing(rows, self._file_rows(winner, files, counts))

    def _file_rows(self, winner: Winner, files: tuple[FileFact, ...], counts: dict[str, int]) -> dict[str, FileRows]:
        paths, table = self._context.paths, self.spec.table
        added = [paths.table(table) / name for name in self._commit(winner).added]
        quarantined = quarantined_of_files(paths.quarantine(table), winner) if counts["quarantined"] else {}
        left_out = self._dropped_of_files(files) if counts["dropped"] else {}
        return rows_of_files([file.path for file in files], added, quarantined, left_out)

    def _dropped_of_files(self, files: tuple[FileFact, ...]) -> dict[str, int]:
        with self._context.open_session({}) as session:
            rows = self._judged(session, files).where(dropped()).groupBy(SOURCE_FILE).count().collect()
        return {row[SOURCE_FILE]: row["count"] for row in rows}

    def _judged(self, session: SparkSession, files: tuple[FileFact, ...]) -> DataFrame:
        records = read_landing(session, self.spec, self._landing, files)
        required = tuple(name for name, column in self.spec.columns.items() if not column.nullable)
        malformed = F.col(CORRUPT).isNotNull()
        unparsed = refused_when(malformed, "malformed record", f"it cannot be parsed as {self.spec.source.format}")
        of_values = (missing_values(required), refusals(self.spec.row_rules))
        parts = (F.when(malformed, no_refusal()).otherwise(part) for part in of_values)
        return judged(records, self.spec.row_rules, unparsed, *parts)

    def _counts(self, winner: Winner, files: tuple[FileFact, ...]) -> dict[str, int]:
        """Records read, quarantined and dropped: observed during the write, or counted again after a crash."""
        if winner.token in self._observed:
            return self._observed[winner.token].get
        require_as_loaded(self.spec, files, self._landing, self._inspected)
        with self._context.open_session({}) as session:
            row = self._judged(session, files).agg(*fate_counts()).first()
        return row.asDict() if row else {}

    def _quarantine(self, session: SparkSession, winner: Winner, files: tuple[FileFact, ...]) -> None:
        records = self._judged(session, files)
        started = F.lit(winner.intent.interval_start).cast("timestamp")
        placed = with_line_position(records).withColumn("_interval_start", started).where(quarantined())
        fields = F.to_json(F.struct(*self.spec.columns, "_rescued"))
        record = F.coalesce(F.col(CORRUPT), fields)
        rows = quarantine_rows(placed, winner, record, reasons(), F.col("_position"))
        append(rows, self._context.paths.quarantine(self.spec.table))

    def _commit(self, winner: Winner) -> Commit:
        return read_commit(self._context.paths.table(self.spec.table), winner.version) or Commit(winner.version)

    def _look(self, file: FileFact) -> FileFact:
        """The file read through; one that Spark could not read is as broken as any other."""
        defect = self._unreadable.get(file.path)
        inspected = self._inspected(file)
        return inspected.model_copy(update={"defect": defect}) if defect else inspected

    def _record_broken(self, table_id: str) -> None:
        known = self._context.ledger.failed_files(self.spec.table, table_id)
        new = [file for file in self.files.broken if known.get(file.path) != file]
        self._context.ledger.record_failed(self.spec.table, table_id, self._context.args.interval, new)

    def _blame_file(self, error: Exception, plan: BatchPlan) -> None:
        """Remember the file that Spark could not read, so that the next plan leaves it out and loads the others."""
        found = _UNREADABLE.search(f"{error} ")
        path = found[1].removeprefix(f"{self._landing}/") if found else ""
        if path in {file.path for file in plan.files}:
            self._unreadable[path] = f"Spark cannot read it to its end: {str(error).splitlines()[0][:300]}"
            raise UnreadableFileError(path) from error


class UnreadableFileError(BadInputError):
    """Raised when a file that looked sound could not be read; a new plan leaves it out."""
