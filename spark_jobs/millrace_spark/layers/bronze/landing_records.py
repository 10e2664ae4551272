"""Landing files as the source of a bronze table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from uuid import uuid4

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.counted import counted
from millrace.contracts.job.report import FileRows, JobReport
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.bronze_sources import SOURCE_FILE
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.landing.earlier_runs import EarlierRuns
from millrace.control.landing.formats.plain_copies import copy_apart
from millrace.control.landing.ingest import FilePlan, not_as_loaded, plan_files
from millrace.control.landing.inspection import inspect, parquet_rows
from millrace.control.landing.landing import LandingFile, interval_files, landing_of
from millrace.control.landing.matching import empty_notes, given_up_notes
from millrace.control.ledger.events import FileEvent
from millrace.control.log.batch import COPIED, BatchSources, FileFact, StreamPosition, Winner, files_digest
from millrace.control.storage.stored_files import delete_files, files_in
from millrace.errors import BadInputError, MillraceError, NotReadyError, StorageError, first_line
from millrace_spark.delta_io.conflict_policy import conflict_of
from millrace_spark.delta_io.landing_reads import (
    invalid_array_in,
    read_landing,
    source_path,
    storage_error_in,
)
from millrace_spark.delta_io.tables import spark_path
from millrace_spark.layers.bronze.file_rows import added_files, rows_of_files
from millrace_spark.layers.bronze.lost_records import ReadAgain
from millrace_spark.layers.bronze.unreadable_files import UnreadableFileError, failing_files, named_file, shown_text
from millrace_spark.layers.dropped import DroppedRows, dropped_by_source
from millrace_spark.layers.quarantined import quarantined_of_files
from millrace_spark.protocol.batches import BatchPlan
from millrace_spark.runtime.context import JobContext
from millrace_spark.spark_errors import cause_of, is_death
from millrace_spark.transforms.drift import drift_of
from millrace_spark.transforms.records import with_line_position


class LandingRecords:
    """The records of landing files, with the same methods as `KafkaRecords`.

    Attributes:
        files: the files of the last plan.
    """

    def __init__(self, context: JobContext, spec: BronzeSpec) -> None:
        self._context = context
        self._spec = spec
        self.files = FilePlan()
        self._landing = landing_of(spec.landing_source.landing, context.args.landing)
        # Each file is inspected once per run, however many batches the run has.
        needed = context.catalog.needed_columns(spec)
        self._inspect_once = cache(partial(inspect, landing=self._landing, spec=spec, needed=needed))
        self._unreadable: dict[str, str] = {}
        self._only_copied: set[str] = set()
        self._copies: dict[str, LakePath] = {}
        self._unreachable: dict[str, tuple[FileFact, NotReadyError | StorageError]] = {}
        self._recorded: set[FileFact] = set()
        self._earlier: dict[str, EarlierRuns] = {}

    @property
    def has_more(self) -> bool:
        """Whether files are left for further batches."""
        return self.files.later > 0

    def check_delivered(self) -> None:
        """Check that the interval's folder exists.

        Raises:
            NotReadyError: it does not exist.
        """
        interval_files(self._spec, self._landing, self._context.args.interval)

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        """Plan to load the next new files of the interval; record the files that are left out, and why."""
        ledger, of_table = self._context.ops.ledger, (self._spec.table, position.table_id)
        earlier = self._earlier.setdefault(position.table_id, EarlierRuns(*of_table, ledger, self._context.notes))
        try:
            self.files = plan_files(
                self._spec,
                self._landing,
                self._context.args.interval,
                ledger.loaded_files(*of_table),
                earlier,
                self._inspect,
            )
        finally:
            self._record(position.table_id)
        new, replaces = self.files.new, self.files.replaces
        more = bool(self.files.later or self.files.unfinished or self.files.unreachable)
        digest = files_digest(new)
        sources = BatchSources(files=len(new), files_digest=digest, replaces_files=replaces, more_files=more)
        if any(file.path in earlier.largest_batches for file in new):
            # One that kills takes the Spark server from other suspects too, whose deaths would count.
            return BatchPlan(sources, new, self._context.leases.suspects())
        return BatchPlan(sources, new) if new else None

    def read(self, session: SparkSession, spec: BronzeSpec, plan: BatchPlan) -> DataFrame:
        """Read the records of the plan's files; `spec` has the columns that drift has added.

        Raises:
            BadInputError, NotReadyError, StorageError: a file cannot be copied; `blame` knows it.
        """
        return self._read(session, spec, plan.files)

    def _read(self, session: SparkSession, spec: BronzeSpec, files: Sequence[FileFact]) -> DataFrame:
        copies = {file.path: self._copy(file) for file in files if file.size and file.layout.startswith(COPIED)}
        return read_landing(session, spec, self._landing, files, copies)

    def _copy(self, file: FileFact) -> LakePath:
        """Return the place of the plain copy of a file, which lasts until the batch is closed."""
        if copy := self._copies.get(file.path):
            return copy
        name = f"{_of_interval(self._context.args.interval.start)}{uuid4().hex}.parquet"
        copy = self._context.paths.landing_copies(self._spec.table) / name
        try:
            copy_apart(LandingFile(self._landing, file.path), file.size, self._spec.landing_source, copy)
        except (NotReadyError, StorageError) as error:
            self._unreachable[file.path] = file, error
            raise
        except (ValueError, FileNotFoundError) as error:
            self._unreadable[file.path] = shown_text(self._spec, error)
            raise BadInputError(f"{self._spec.table}: {file.path}: {shown_text(self._spec, error)}") from error
        self._copies[file.path] = copy
        return copy

    def is_exempt(self) -> Column:
        """Return false: every record of a file is checked."""
        return F.lit(False)

    def source(self) -> Column:
        """Return the file of a record, relative to the landing root."""
        return F.col(SOURCE_FILE)

    def with_position(self, records: DataFrame) -> DataFrame:
        """Add the record's number in its file as `_position`."""
        return with_line_position(records)

    @property
    def has_row_count(self) -> bool:
        """Whether the files are Parquet: their footers state the number of rows."""
        return self._spec.landing_source.format == "parquet"

    def row_count(self, plan: BatchPlan) -> int:
        """Return how many rows the plan's Parquet files have."""
        return sum(parquet_rows(LandingFile(self._landing, file.path)) for file in plan.files if file.size)

    @contextmanager
    def reading_again(self, winner: Winner, plan: BatchPlan, read: Callable[[BatchPlan], None]) -> Iterator[ReadAgain]:
        """Enter with what can be read again of a committed batch, to close it.

        A file that is gone, or has other content, is left out. After a death each file is first read alone, so that one
        that kills is found (ADR 59), and left out after `max_attempts_per_file` drivers. If the closing kills as many,
        though each file can be read, nobody looks for rescued values.

        Args:
            winner: the batch; its driver died after the commit.
            plan: its plan.
            read: reads the records of a plan as the closing does.

        Raises:
            NotReadyError: the landing of the table has no file at all.
        """
        attempts, intent = self._context.ops.ledger.attempts, winner.intent
        together, alone = attempts.deaths_in_closing(intent)
        limit = self._spec.landing_source.max_attempts_per_file
        killers = {path: f"it killed {deaths} drivers" for path, deaths in alone.items() if deaths >= limit}
        harmless = [file for file in plan.files if file.path not in killers]
        lost = killers | not_as_loaded(self._spec, harmless, self._landing, self._inspect_once)
        left = tuple(file for file in harmless if file.path not in lost)
        has_died = together > 0 or any(alone.values())
        with self._context.leases.suspects() if has_died else nullcontext():
            # An earlier run has outlived the others.
            unread = [file for file in left if file.path not in alone or alone[file.path]]
            for file in sorted(unread, key=lambda file: alone[file.path]) if has_died else ():
                with attempts.closing(intent, file, is_death):
                    read(replace(plan, files=(file,)))
            if together > limit:
                self._context.notes.append(
                    f"batch {winner.batch_seq} may have rescued values that nobody has counted: {together} drivers "
                    "died while they closed it"
                )
            with attempts.closing(intent, None, is_death):
                yield ReadAgain(replace(plan, files=left), lost, finds_rescued=together <= limit)

    def blame(self, error: Exception, plan: BatchPlan, spec: BronzeSpec) -> None:
        """Remember what made a write fail, so that the next plan loads the other files, or reads a copy of this one.

        If the error names no file, each kind of file, or each half of the files, is read alone.

        Raises:
            UnreadableFileError: it is a file of the plan.
        """
        if is_death(error):
            return
        if not any(file.path in self._unreadable or file.path in self._unreachable for file in plan.files):
            path, defect = self._path_and_defect(error)
            failing = {file: defect for file in plan.files if file.path == path}
            if not path and conflict_of(error) is None:
                with self._context.open_session({}) as session:
                    read = partial(self._read, session, spec)
                    failing = failing_files(error, plan.files, read, partial(shown_text, self._spec))
            for file, cause in failing.items():
                self._leave_out(file, cause, error)
            if not failing:
                return
        raise UnreadableFileError(f"{self._spec.table}: {shown_text(self._spec, error)}") from error

    def _leave_out(self, file: FileFact, defect: str, error: Exception) -> None:
        """Let the next plan leave a file out, or read a copy of it if Spark itself could not read it."""
        kind = self._spec.landing_source.format
        # Spark Connect names no Avro file.
        may_be_copied = (kind == "parquet" and named_file(error)) or (kind == "avro" and drift_of(error) is None)
        if trouble := storage_error_in(error):
            cause = f"{self._landing.location(file.path)}: Spark could not read it to its end ({trouble})"
            self._unreachable[file.path] = file, NotReadyError(cause)
        elif may_be_copied and not file.layout.startswith(COPIED):
            self._only_copied.add(file.path)
        else:
            self._unreadable[file.path] = defect

    def _path_and_defect(self, error: Exception) -> tuple[str, str]:
        """Return the file that made a write fail, and its defect; empty texts if the error names no file."""
        if named := named_file(error):
            of_copy = (path for path, copy in self._copies.items() if spark_path(copy) == named)
            path = next(of_copy, source_path(self._landing, named))
            return path, f"Spark cannot read it to its end: {shown_text(self._spec, error, cause_of)[:300]}"
        if drift := drift_of(error):
            return drift[0], f"values that fit no column: {drift[1][:300]}; declare them, or set on_drift: rescue"
        return invalid_array_in(error), "it is not one sound JSON array; have it delivered again"

    def close_batch(
        self, winner: Winner, plan: BatchPlan, counts: Mapping[str, int], dropped: Sequence[DroppedRows]
    ) -> Mapping[str, FileRows]:
        """Return landing file -> the counts of its records; delete the copies of the files."""
        paths, table = self._context.paths, self._spec.table
        if any(file.layout.startswith(COPIED) for file in plan.files):
            # Also those that a killed driver left: only one run at a time reads the files of an interval.
            starts = self._context.args.interval.start, winner.intent.interval_start
            copies, own = paths.landing_copies(table), tuple(map(_of_interval, starts))
            delete_files(copies, [file.name for file in files_in(copies) if file.name.startswith(own)])
            self._copies.clear()
        added = added_files(paths.table(table), winner)
        quarantined = quarantined_of_files(paths.quarantine(table), winner) if counts["quarantined"] else {}
        return rows_of_files([file.path for file in plan.files], added, quarantined, dropped_by_source(dropped))

    def add_to_report(self, report: JobReport) -> JobReport:
        """Return the report with the status of each file; its rows and version are those of the loaded files.

        The run ends as bad input if a file was broken, else as not ready if a file was unreachable or unfinished.
        """
        # The ledger has the status of files of earlier runs.
        statuses = {
            **{file.path: "loaded" for file in self.files.new},
            **{file.path: "unfinished" for file in self.files.unfinished},
            **{file.path: f"unreachable: {file.defect}" for file in self.files.unreachable},
            **{file.path: f"failed: {file.defect}" for file in self.files.broken},
            **{file.path: f"given up {file.defect}" for file in self.files.given_up},
        }
        notes = (*report.notes, *given_up_notes(self.files.given_up), *empty_notes(self.files.new))
        report = report.model_copy(update={"files": statuses, "notes": notes})
        again = "Have them delivered again, then run this again (in Airflow, clear the task)."
        others = ", the others are loaded" if self.files.loaded + len(self.files.new) else ""
        endings: list[tuple[type[MillraceError], tuple[FileFact, ...], str, str]] = [
            (BadInputError, self.files.broken, f"cannot be loaded{others}", again),
            (NotReadyError, self.files.unreachable, "could not be read", "It is the storage: the run tries again."),
            (NotReadyError, self.files.unfinished, f"are still being written{others}", "The run tries again."),
        ]
        endings = [ending for ending in endings if ending[1]]
        if not endings:
            return report
        error = endings[0][0]
        message = "\n".join(self._lines(files, state, todo) for _, files, state, todo in endings)
        return report.model_copy(update={"outcome": error.outcome, "error_class": error.__name__, "message": message})

    def _lines(self, files: tuple[FileFact, ...], state: str, todo: str) -> str:
        count = len(files) + self.files.loaded + len(self.files.new)
        lines = [f"{self._spec.table}: {len(files)} of {counted(count, 'file')} {state}"]
        for file in files:
            number = self.files.attempts.get(file.path)
            attempt = f" (attempt {number} of {self._spec.landing_source.max_attempts_per_file})" if number else ""
            name = file.path.replace("\n", r"\n").replace("\r", r"\r")  # or a name could write lines of its own
            lines.append(f"  {name}: {file.defect}{attempt}".removesuffix(": "))
        return "\n".join([*lines, todo])

    def _inspect(self, file: FileFact) -> FileFact:
        """Inspect a file; return it with a defect if it is broken, or if Spark could not read it.

        Raises:
            NotReadyError, StorageError: the storage does not deliver it, or did not deliver it earlier in this run.
        """
        if file.path in self._unreachable:
            raise self._unreachable[file.path][1]
        defect = self._unreadable.get(file.path)
        try:
            inspected = self._inspect_once(file)
        except (NotReadyError, StorageError) as error:
            self._unreachable[file.path] = file, error
            raise
        if file.path in self._only_copied:
            inspected = replace(inspected, layout=COPIED + inspected.layout)
        return replace(inspected, defect=defect) if defect else inspected

    def _record(self, table_id: str) -> None:
        """Record the state of the files that are not loaded now, once per run, though a run plans several times."""
        of_run = self._spec.table, table_id, self._context.args.interval
        unreachable = [replace(file, defect=first_line(error)) for file, error in self._unreachable.values()]
        for event, files in (
            (FileEvent.FAILED, self.files.broken),
            (FileEvent.UNREACHABLE, unreachable),
            (FileEvent.SEEN, self.files.seen),
            (FileEvent.TOUCHED, self.files.touched),
        ):
            new = [file for file in files if file not in self._recorded]
            self._recorded.update(new)
            self._context.ops.ledger.record_files(event, *of_run, new)


def _of_interval(start: datetime) -> str:
    """Return the beginning of the names of copies that the runs of an interval make."""
    return f"{start:%Y%m%dT%H%M%S}-"
