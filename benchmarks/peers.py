"""The two sides, and the command by which each writes a table for a day."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from embedded.clone import CLONE
from millrace.cli.runs.driver import MASTER
from millrace.contracts.job.args import WRITER_OF_LAYER, Job, JobArgs
from millrace.driver_environment import driver_environment, own_spark
from millrace.paths import OWN, LakehousePaths, RunPaths
from millrace.settings import Settings
from millrace.spark_conf import launch_conf
from millrace.spark_location import job_file, spark_home

CHAIN = ("bronze.flight_events", "silver.flights", "gold.route_performance_daily")
"""The tables that both sides write, in build order."""

DELTA = "io.delta:delta-spark_4.1_2.13:4.4.0"
_SPARK_SUBMIT = str(spark_home() / "bin" / "spark-submit")


@dataclass(frozen=True)
class Place:
    """The folders of a side.

    Attributes:
        lake: the folder of its tables.
        landing: the landing folder that it reads.
    """

    lake: Path
    landing: Path

    def table(self, table: str) -> Path:
        """Return the folder of a table."""
        return Path(LakehousePaths(self.lake).table(table))

    def commit(self, table: str, version: int) -> Path:
        """Return the commit file of a version of a table."""
        return self.table(table) / "_delta_log" / f"{version:020d}.json"


class Peer(Protocol):
    """One side.

    Attributes:
        name: its name in results.
        first_data_version: the first version of a table with rows.
    """

    @property
    def name(self) -> str: ...

    @property
    def first_data_version(self) -> int: ...

    def writer(self, table: str, place: Place, day: str) -> list[str]:
        """Return the command that writes a table for a day (`2013-01-01`)."""
        ...

    def environment(self) -> dict[str, str]:
        """Return the environment of its commands."""
        ...


@dataclass(frozen=True)
class Millrace:
    """Millrace's own jobs by spark-submit, with the settings of every session of Millrace.

    Attributes:
        without: a text to remove from the JVM's options, to measure its effect.
        tables: the folder of its specs; None for the project's own.
        large_load: it has the JVM options of a large load.
    """

    name: str = "Millrace"
    without: str = ""
    tables: Path | None = None
    large_load: bool = False
    # Version 0 is the empty table, which is created before it is written.
    first_data_version: int = 1

    def writer(self, table: str, place: Place, day: str) -> list[str]:
        """Return the writer of the table's layer."""
        return self.job(WRITER_OF_LAYER[table.split(".")[0]], table, place, day)

    def job(self, job: Job, table: str, place: Place, day: str) -> list[str]:
        """Return the command of a job on a table."""
        return self.application(Path(job_file(job.application)), *self.arguments(job, table, place, day).to_argv())

    def application(self, file: Path, *arguments: str) -> list[str]:
        """Return the command of an application in a session of Millrace."""
        return [_SPARK_SUBMIT, "--master", MASTER, *self._conf(), str(file), *arguments]

    def arguments(self, job: Job, table: str, place: Place, day: str) -> JobArgs:
        """Return the arguments of a job."""
        start = datetime.fromisoformat(day).replace(tzinfo=UTC)
        return JobArgs(
            table=table,
            interval_start=start,
            interval_end=start + timedelta(days=1),
            run_id="benchmark",
            root=place.lake,
            landing=str(place.landing),
            tables=self.tables or Settings().tables,
            report=RunPaths(place.lake / OWN).reports / "benchmark" / day / f"{table}.{job}.json",
        )

    def environment(self) -> dict[str, str]:
        """Return the environment that `lakehouse run` gives to its driver."""
        return driver_environment(os.environ, MASTER, own_spark())

    def _conf(self) -> list[str]:
        conf = launch_conf(Settings().jars, MASTER, large_load=self.large_load)
        conf = {key: value.replace(self.without, "") if self.without else value for key, value in conf.items()}
        return [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]


@dataclass(frozen=True)
class Naive:
    """The scripts of `benchmarks/naive` by spark-submit, with default settings and jars by `--packages`.

    Attributes:
        ivy: the folder of the jars that spark-submit resolves in the first round and reuses later.
    """

    ivy: Path
    name: str = "N"
    first_data_version: int = 0

    def writer(self, table: str, place: Place, day: str) -> list[str]:
        """Return the command of the script of the table's layer."""
        return self.script(table.split(".")[0], place, day)

    def script(self, name: str, place: Place, day: str) -> list[str]:
        """Return the command of a script."""
        script = CLONE / "benchmarks" / "naive" / f"{name}.py"
        return self.application(script, str(place.lake), str(place.landing), day)

    def application(self, file: Path, *arguments: str) -> list[str]:
        """Return the command of an application in a session with default settings."""
        return [*self.submit(), str(file), *arguments]

    def submit(self) -> list[str]:
        """Return spark-submit as in Delta's quick start, up to the application."""
        return [
            _SPARK_SUBMIT,
            *("--master", MASTER),
            *("--packages", DELTA),
            *("--conf", f"spark.jars.ivy={self.ivy}"),
            *("--conf", "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension"),
            *("--conf", "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog"),
        ]

    def environment(self) -> dict[str, str]:
        """Return an environment with this Python and its Spark, and nothing of Millrace."""
        inherited = {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"}
        return {**inherited, **own_spark(), "TZ": "UTC"}
