"""The arguments of a program as a frozen model, which pydantic-settings writes as a command line and parses again."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict
from pydantic_settings import CliApp, SettingsConfigDict

from millrace.contracts.interval import Instant, Interval
from millrace.contracts.roots import LakeRoot, LandingRoot


class CommandLine(BaseModel):
    """The arguments of a program: a field `run_id` becomes `--run-id`, and a boolean field becomes a switch."""

    # pydantic-settings reads one text as None, by default "None". This is a text that no command line can hold.
    model_config = SettingsConfigDict(frozen=True, extra="forbid", cli_parse_none_str="\0")

    def to_argv(self) -> list[str]:
        """Return the arguments as a command line, from which `from_argv` makes the same model.

        Each value is joined to its flag by `=`, because a separate value that begins with a dash would be read as a
        flag.
        """
        fields = type(self).model_fields
        switches = {f"--{name.replace('_', '-')}" for name, field in fields.items() if field.annotation is bool}
        parts = iter(CliApp.serialize(self))
        return [part if part in switches else f"{part}={next(parts)}" for part in parts]

    @classmethod
    def from_argv(cls, argv: list[str]) -> Self:
        """Parse a command line.

        Raises:
            SystemExit: with a usage message, when an argument is missing, unknown or wrong.
        """
        return CliApp.run(cls, cli_args=argv)


class Job(StrEnum):
    """The jobs of the data plane; each is the module `spark_jobs/millrace_spark/jobs/<name>.py`."""

    BRONZE_INGEST = "bronze_ingest"
    SILVER_MERGE = "silver_merge"
    GOLD_AGGREGATE = "gold_aggregate"
    QUALITY_GATE = "quality_gate"
    TABLE_LOG = "table_log"
    TABLE_OPTIMIZE = "table_optimize"
    TABLE_VACUUM = "table_vacuum"
    QUARANTINE_FIX = "quarantine_fix"
    QUARANTINE_REPLAY = "quarantine_replay"
    TABLE_REBUILD = "table_rebuild"
    TABLE_REPAIR = "table_repair"
    TABLE_VERIFY = "table_verify"
    SUBJECT_ERASURE = "subject_erasure"

    @property
    def application(self) -> str:
        """The job's file, relative to the package `millrace_spark`."""
        return f"jobs/{self.value}.py"


WRITER_OF_LAYER = {"bronze": Job.BRONZE_INGEST, "silver": Job.SILVER_MERGE, "gold": Job.GOLD_AGGREGATE}
"""The job that writes the batches of each layer."""


class JobArgs(CommandLine):
    """The arguments of a job. They never hold secrets, which come from the environment.

    Attributes:
        table: the table to write, check or maintain.
        interval_start: start of the interval (UTC, inclusive); downstream of bronze it is only a label.
        interval_end: end of the interval (UTC, exclusive), at which a rule of freshness measures the age of rows.
        run_id: the Airflow run id, or the id of a run of the CLI.
        root: the lakehouse root.
        landing: the landing root.
        tables: the folder of the table specs.
        report: the file to which the job writes its report.
        reprocess: whether to read the interval's bronze rows again, even if they were consumed before.
        allow_deletes: the person who allows more deleted keys than `max_deleted_percent`, or VACUUM to delete what a
            table keeps for a short time only; empty for nobody.
        dry_run: maintenance, quarantine, rebuilds and repairs only: whether to report the plan without doing it.
        request: quarantine, rebuilds, repairs and erasures only: the file of the request.
        sample: verification only: the number of values of `refresh_by` whose groups are compared; 0 for all.
    """

    table: str
    interval_start: Instant
    interval_end: Instant
    run_id: str
    root: LakeRoot
    landing: LandingRoot
    tables: Path
    report: Path
    reprocess: bool = False
    allow_deletes: str = ""
    dry_run: bool = False
    request: Path | None = None
    sample: int = 0

    @property
    def interval(self) -> Interval:
        """The interval of the run."""
        return Interval(start=self.interval_start, end=self.interval_end)


class CheckedVersion(BaseModel):
    """A table version that a gate's task checked; `suite_hash` is the digest of the rules."""

    model_config = ConfigDict(frozen=True)

    table: str
    version: int
    suite_hash: str


class DataDocsArgs(CommandLine):
    """The arguments of the builder of a run's Data Docs.

    Attributes:
        root: the lakehouse root.
        folder: the run's folder, which the builder creates; the pages go to a folder in it.
        run_id: the Airflow run, for the pages.
        versions: the table versions that the run's gates checked.
    """

    root: LakeRoot
    folder: Path
    run_id: str
    versions: tuple[CheckedVersion, ...]
