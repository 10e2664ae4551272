"""The arguments of a job: one frozen model, whose argv is generated and parsed by pydantic-settings."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from include.contracts.interval import Instant, Interval
from include.contracts.job.command_line import CommandLine
from include.contracts.lake_root import LakeRoot
from include.contracts.landing_root import LandingRoot


class Job(StrEnum):
    """The jobs of the data plane; each is the module `spark_jobs/jobs/<name>.py`."""

    BRONZE_INGEST = "bronze_ingest"
    SILVER_MERGE = "silver_merge"
    GOLD_AGGREGATE = "gold_aggregate"
    QUALITY_GATE = "quality_gate"
    TABLE_OPTIMIZE = "table_optimize"
    TABLE_VACUUM = "table_vacuum"
    QUARANTINE_FIX = "quarantine_fix"
    QUARANTINE_REPLAY = "quarantine_replay"
    TABLE_REBUILD = "table_rebuild"

    @property
    def application(self) -> str:
        """The job's file, relative to the project."""
        return f"spark_jobs/jobs/{self.value}.py"


WRITER_OF_LAYER = {"bronze": Job.BRONZE_INGEST, "silver": Job.SILVER_MERGE, "gold": Job.GOLD_AGGREGATE}
"""The job that writes the batches of each layer."""


class JobArgs(CommandLine):
    """What a job is told. Secrets are never among it: they come from the environment.

    Attributes:
        table: the table to write, judge or maintain.
        interval_start: start of the interval (UTC, inclusive); a label below bronze.
        interval_end: end of the interval (UTC, exclusive).
        run_id: who asked: the Airflow run id, or `cli`.
        root: the lakehouse root.
        landing: the landing root.
        tables: the folder of the table specs.
        report: the file that the job writes its report to.
        reprocess: read the interval's bronze rows again, whatever was consumed.
        allow_deletes: the person who lets more keys go than `max_deleted_percent`; nobody for none.
        dry_run: maintenance, quarantine and rebuilds only: say what would be done, and do nothing.
        request: quarantine and rebuilds only: the file that says what exactly is asked for.
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

    @property
    def interval(self) -> Interval:
        """The interval of the run."""
        return Interval(start=self.interval_start, end=self.interval_end)
