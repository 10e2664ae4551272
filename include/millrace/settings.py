"""The settings of one Millrace installation, read from the environment (prefix `LAKEHOUSE_`)."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from millrace.contracts.airflow_access import AirflowAccess
from millrace.contracts.lake_path import S3Path
from millrace.contracts.roots import Folder, LakeRoot, LandingRoot, ViewsRoot
from millrace.paths import OWN, LakehousePaths, RunPaths

PROJECT = Path(__file__).resolve().parents[2]


class Settings(BaseSettings):
    """The settings of this installation.

    Attributes:
        root: folder of the Delta tables, the ledger and leases, or `s3://bucket/prefix`.
        runs: folder of job reports, driver logs and Data Docs; `_millrace` under a root that is a folder.
        keep_runs_days: the number of days for which these are kept.
        keep_commits_days: the number of days for which `ops.commits` keeps contended runs.
        views: a folder or `s3://bucket/prefix` for views of the certified versions, which gates keep up to date; all
            machines share it.
        landing: folder into which source systems deliver their files, or `s3://bucket/prefix`.
        tables: folder of the table specs.
        jars: folder of the jars every Spark session runs with.
        umask: the rights to new files that others do not get, as octal digits, like the shell's `umask`; what the umask
            of a process withholds stays withheld.
        s3_connection: the Airflow connection with the credentials of the bucket of the tables; empty if the environment
            has them. Only Airflow's tasks use it.
        second_person: whether a gate override, many deletes, a rebuild or a change of quarantined values needs the
            approval of a person other than the one who asked for it, if several people may approve; the command line
            asks nobody, and then refuses them. If it is not set, Airflow asks, and the command line acts alone.
        row_values_for: who may see values of rows on pages and in questions: `editors`, who may edit the DAG of the
            table's domain, or `log_readers`, who may read the logs of its tasks.
        kafka: Kafka cluster -> its client's settings with librdkafka's names, as JSON:
            `{"main": {"bootstrap.servers": "broker:9092"}}`. They may hold secrets, so they are never shown.
        airflow: the Airflow to which `lakehouse run` announces certified versions, as JSON:
            `{"url": ..., "login": ..., "password": ...}`, or `{"url": ..., "token": ...}`.
        metrics_token: the token with which a scraper reads the metrics from the web server.
        metrics_token_file: a file with this token, which is read at each scrape; the setting above wins.
    """

    # An error must not show the value: it may be a password.
    model_config = SettingsConfigDict(
        env_prefix="LAKEHOUSE_", env_ignore_empty=True, frozen=True, hide_input_in_errors=True
    )

    root: LakeRoot = PROJECT / "data" / "lakehouse"
    runs: Folder | None = None
    keep_runs_days: int = Field(default=90, ge=1)
    keep_commits_days: int = Field(default=365, ge=1)
    views: ViewsRoot = None
    landing: LandingRoot = str(PROJECT / "data" / "landing")
    tables: Folder = PROJECT / "include" / "tables"
    jars: Folder = PROJECT / ".jars"
    umask: str = Field(default="027", pattern="^[0-7]{3}$")
    s3_connection: str = ""
    second_person: bool | None = None
    row_values_for: Literal["editors", "log_readers"] = "editors"
    kafka: dict[str, dict[str, str]] = Field(default_factory=dict, repr=False)
    airflow: AirflowAccess | None = None
    metrics_token: SecretStr = SecretStr("")
    metrics_token_file: Folder | None = None

    @property
    def paths(self) -> LakehousePaths:
        """The folders of the lakehouse."""
        return LakehousePaths(self.root, views=self.views)

    @property
    def asks_second_person(self) -> bool:
        """Whether Airflow asks a second person."""
        return self.second_person is not False

    @property
    def questions_have_values(self) -> bool:
        """Whether questions show values of rows: Airflow shows a question to everybody who may read its DAG."""
        return self.row_values_for == "log_readers"

    @property
    def run_paths(self) -> RunPaths:
        """The folders of the files that runs write for people."""
        default = self.root / OWN if isinstance(self.root, Path) else PROJECT / "data" / "runs"
        return RunPaths(self.runs or default)

    @property
    def keep_commits(self) -> timedelta:
        """How long `ops.commits` keeps its events."""
        return timedelta(days=self.keep_commits_days)

    def absolute(self) -> Settings:
        """Return the settings with absolute paths, for processes that run in another folder."""
        return self.model_copy(update={name: value.resolve() for name, value in self if isinstance(value, Path)})

    def environment(self) -> dict[str, str]:
        """Return the environment variables that give another process the same settings."""
        places = {name: str(place) for name, place in self.absolute() if isinstance(place, Path | S3Path | str)}
        names = ("kafka", "second_person", "keep_runs_days", "keep_commits_days")
        others = {name: json.dumps(value) for name in names if (value := getattr(self, name)) is not None}
        return {f"LAKEHOUSE_{name.upper()}": value for name, value in (places | others).items()}
