"""Landing files as the source of a bronze table."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from include.contracts.job.report import FileRows, JobReport
from include.contracts.spec.table_spec import BronzeSpec
from include.control.landing.ingest import FilePlan, plan_files, require_as_loaded
from include.control.landing.inspection import inspect, is_whole_parquet, parquet_rows
from include.control.landing.landing import LandedFile, each_file, landing_of
from include.control.landing.matching import given_up_notes
from include.control.ledger.events import Failure
from include.control.log.batch import BatchSources, FileFact, StreamPosition, Winner, files_digest
from include.control.log.delta_log import read_commit
from include.errors import BadInputError, MillraceError, NotReadyError, StorageError, first_line
from include.specs.checks.needed_columns import needed_columns
from spark_jobs.delta_io.json_arrays import no_array_in
from spark_jobs.delta_io.landing_reads import SOURCE_FILE, read_landing, source_path, storage_trouble
from spark_jobs.layers.bronze.file_rows import quarantined_of_files, rows_of_files
from spark_jobs.layers.refused import Dropped, dropped_of_sources
from spark_jobs.protocol.batches import BatchPlan
from spark_jobs.runtime.context import JobContext
from spark_jobs.transforms.drift import drift_of
from spark_jobs.transforms.records import with_line_position

_UNREADABLE = re.compile(r"FAILED_READ_FILE[^]]*\].*?(?:file:/*(?=/)|(?=s3a:))(\S+?)\.?\s", re.DOTALL)


class UnreadableFileError(BadInputError):
    """Raised when a file that looked sound could not be read; a new plan leaves it out."""


class LandingRecords:
    """The `BronzeRecords` of landing files.

    Attributes:
        files: what the last plan found.
    """

    origin: Mapping[str, str] = {SOURCE_FILE: "string"}

    def __init__(self, context: JobContext, spec: BronzeSpec) -> None:
        self._context = context
        self._spec = spec
        self.files = FilePlan()
        self._landing = landing_of(spec.landing_source.landing, context.args.landing)
        # A file is read through once a run, however many batches it takes.
        needed = needed_columns(spec, context.catalog.specs.values())
        self._inspected = cache(partial(inspect, landing=self._landing, spec=spec, needed=needed))
        self._unreadable: dict[str, str] = {}
        self._out_of_reach: dict[str, tuple[FileFact, NotReadyError | StorageError]] = {}
        self._recorded: set[FileFact] = set()
        self._asked: set[str] = set()
        self._failures: dict[str, Failure] = {}

    @property
    def has_more(self) -> bool:
        """Whether files are left for further batches."""
        return self.files.later > 0

    def check_delivered(self) -> None:
        """Whether the interval's folder is there at all.

        Raises:
            NotReadyError: it is not.
        """
        each_file(self._spec, self._landing, self._context.args.interval)

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        """The next files of the interval that no batch has loaded yet; others are recorded, and left out."""
        try:
            self.files = plan_files(
                self._spec,
                self._landing,
                self._context.args.interval,
                self._context.records.ledger.loaded_files(self._spec.table, position.table_id),
                partial(self._failed_before, position.table_id),
                self._look,
            )
        finally:
            self._record(position.table_id)
        new, replaces = self.files.new, self.files.replaces
        left = bool(self.files.later or self.files.unfinished or self.files.unreachable)
        digest = files_digest(new)
        sources = BatchSources(files=len(new), files_digest=digest, replaces_files=replaces, more_files=left)
        return BatchPlan(sources, new) if new else None

    def _failed_before(self, table_id: str, paths: Collection[str]) -> Mapping[str, Failure]:
        """The failures as they were before the run: what fails in it counts once, however often it plans."""
        new = set(paths) - self._asked
        self._failures |= self._context.records.ledger.failures(self._spec.table, table_id, path=new) if new else {}
        self._asked |= new
        return self._failures

    def read(self, session: SparkSession, spec: BronzeSpec, plan: BatchPlan) -> DataFrame:
        """The records of the plan's files."""
        return read_landing(session, spec, self._landing, plan.files)

    def exempt(self) -> Column:
        """Every record of a file is judged."""
        return F.lit(False)

    def source(self) -> Column:
        """The file."""
        return F.col(SOURCE_FILE)

    def placed(self, records: DataFrame) -> DataFrame:
        """Add the record's number in its file as `_position`."""
        return with_line_position(records)

    @property
    def state_their_rows(self) -> bool:
        """Parquet files say in their footers how many rows they hold, and each of these can be read."""
        return self._spec.landing_source.format == "parquet"

    def stated_rows(self, plan: BatchPlan) -> int:
        """How many rows the plan's Parquet files say that they hold: what Spark must have read."""
        return sum(parquet_rows(LandedFile(self._landing, file.path)) for file in plan.files if file.size)

    def require_as_planned(self, plan: BatchPlan) -> None:
        """Whether the files still hold what was loaded of them.

        Raises:
            BadInputError: one has other content, or is gone.
        """
        require_as_loaded(self._spec, plan.files, self._landing, self._inspected)

    def blame(self, error: Exception, plan: BatchPlan) -> None:
        """Remember the file that Spark could not read, so that the next plan leaves it out and loads the others.

        Raises:
            UnreadableFileError: it is one of the plan's.
        """
        path, defect = self._blamed(error)
        for file in (one for one in plan.files if one.path == path):
            if trouble := self._trouble(path, error):
                self._out_of_reach[path] = file, NotReadyError(f"{self._landing.place(path)}: {trouble}")
            else:
                self._unreadable[path] = defect
            raise UnreadableFileError(path) from error

    def _trouble(self, path: str, error: Exception) -> str:
        """What the storage did while Spark read a file; empty where the content is to blame, which is read again."""
        if not _UNREADABLE.search(f"{error} "):
            return ""
        if said := storage_trouble(error):
            return f"Spark could not read it to its end ({said})"
        if self._spec.landing_source.format != "parquet":
            return ""
        try:
            is_whole = is_whole_parquet(LandedFile(self._landing, path))
        except (NotReadyError, StorageError) as trouble:
            return first_line(trouble)
        return f"Spark could not read it to its end, though it is sound ({first_line(error)})" if is_whole else ""

    def _blamed(self, error: Exception) -> tuple[str, str]:
        """(the file that made a write fail, what is wrong with it); empty where the error names none."""
        if found := _UNREADABLE.search(f"{error} "):
            reason = f"Spark cannot read it to its end: {first_line(error)}"
            return source_path(self._landing, found[1]), reason
        if drift := drift_of(error):
            path, values = drift
            return path, f"values that fit no column: {values[:300]}; declare them, or set on_drift: rescue"
        return no_array_in(error), "it is not one sound JSON array; have it delivered again"

    def closed(
        self, winner: Winner, plan: BatchPlan, counts: Mapping[str, int], left_out: Sequence[Dropped]
    ) -> Mapping[str, FileRows]:
        """What became of the records of each file."""
        paths, table = self._context.paths, self._spec.table
        commit = read_commit(paths.table(table), winner.version)
        added = [paths.table(table) / name for name in commit.added] if commit else []
        quarantined = quarantined_of_files(paths.quarantine(table), winner) if counts["quarantined"] else {}
        return rows_of_files([file.path for file in plan.files], added, quarantined, dropped_of_sources(left_out))

    def ended(self, report: JobReport) -> JobReport:
        """The report with each file's status; its rows and version are those of what was loaded.

        The run ends as bad input if a file was broken, else as not ready if the storage did not hand one over, or if
        one is unfinished.
        """
        notes = (*report.notes, *given_up_notes(self.files.given_up))
        told = report.model_copy(update={"files": self._statuses(), "notes": notes})
        again = "Have them delivered again, then run this again (in Airflow, clear the task)."
        endings: list[tuple[type[MillraceError], tuple[FileFact, ...], str, str]] = [
            (BadInputError, self.files.broken, f"cannot be loaded{self._others()}", again),
            (NotReadyError, self.files.unreachable, "could not be read", "It is the storage: the run tries again."),
            (NotReadyError, self.files.unfinished, f"are still being written{self._others()}", "The run tries again."),
        ]
        found = [ending for ending in endings if ending[1]]
        if not found:
            return told
        first, message = found[0][0], "\n".join(self._lines(files, state, todo) for _, files, state, todo in found)
        update = {"outcome": first.outcome, "error_class": first.__name__, "message": message}
        return told.model_copy(update=update)

    def _others(self) -> str:
        return ", the others are loaded" if self.files.loaded + len(self.files.new) else ""

    def _lines(self, files: tuple[FileFact, ...], state: str, todo: str) -> str:
        count = len(files) + self.files.loaded + len(self.files.new)
        lines = [f"  {file.path}: {file.defect}{self._attempt(file)}".removesuffix(": ") for file in files]
        return "\n".join([f"{self._spec.table}: {len(files)} of {count} files {state}", *lines, todo])

    def _attempt(self, file: FileFact) -> str:
        most = self._spec.landing_source.max_attempts_per_file
        number = self.files.attempts.get(file.path)
        return f" (attempt {number} of {most})" if number else ""

    def _statuses(self) -> dict[str, str]:
        """file -> `loaded`, `unfinished`, `unreachable: <reason>`, or `failed: <defect>`; those of earlier runs are in
        the ledger."""
        files = self.files
        return {
            **{file.path: "loaded" for file in files.new},
            **{file.path: "unfinished" for file in files.unfinished},
            **{file.path: f"unreachable: {file.defect}" for file in files.unreachable},
            **{file.path: f"failed: {file.defect}" for file in files.broken},
            **{file.path: f"given up {file.defect}" for file in files.given_up},
        }

    def _look(self, file: FileFact) -> FileFact:
        """The file read through; one that Spark could not read is as broken as any other.

        Raises:
            NotReadyError, StorageError: the storage does not hand it over, now or when this run last asked.
        """
        if file.path in self._out_of_reach:
            raise self._out_of_reach[file.path][1]
        defect = self._unreadable.get(file.path)
        try:
            inspected = self._inspected(file)
        except (NotReadyError, StorageError) as error:
            self._out_of_reach[file.path] = file, error
            raise
        return replace(inspected, defect=defect) if defect else inspected

    def _record(self, table_id: str) -> None:
        """Write down what was found of files that are not loaded now.

        Each is recorded once, though a run plans several times; `_recorded` holds what this one has said.
        """
        ledger, of_run = self._context.records.ledger, (self._spec.table, table_id, self._context.args.interval)
        unreached = [replace(file, defect=first_line(error)) for file, error in self._out_of_reach.values()]
        ledger.record_failed(*of_run, self._not_yet_recorded(self.files.broken))
        ledger.record_unreachable(*of_run, self._not_yet_recorded(unreached))
        ledger.record_seen(*of_run, self._not_yet_recorded(self.files.seen))
        ledger.record_touched(*of_run, self._not_yet_recorded(self.files.touched))

    def _not_yet_recorded(self, files: Sequence[FileFact]) -> list[FileFact]:
        new = [file for file in files if file not in self._recorded]
        self._recorded.update(new)
        return new
