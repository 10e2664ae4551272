"""The settings of one installation: environment variables that begin with `LAKEHOUSE_`, and its project's `.env`."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, DotEnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from millrace.contracts.airflow_access import AirflowAccess
from millrace.contracts.lake_path import S3Path
from millrace.contracts.roots import ExistingFolder, Folder, LakeRoot, LandingRoot, ViewsRoot
from millrace.errors import ProjectError
from millrace.paths import OWN, SCHEMA_FILE, LakehousePaths, RunPaths

JARS = ".jars"

GateReads: TypeAlias = Literal["cheaper", "changes", "all_rows"]
"""Which rows a gate reads, see `Settings`."""

_IN_PROJECT = {"root": "data/lakehouse", "landing": "data/landing", "tables": "tables", "jars": JARS}
"""Setting of a place -> where it is in a project by default."""

_OF_PROJECT: Any = Field(default=None, validate_default=False)
"""The default of a place that a project has; without a project the setting is left out."""

_PLACES = (*_IN_PROJECT, "runs", "views", "metrics_token_file")


def project_of(folder: Path) -> Path | None:
    """Return the project that a folder belongs to: the nearest folder, upward, with `tables` and the specs' schema."""
    found = (each for each in _upward(folder) if os.path.isdir(each / "tables") and os.path.isfile(each / SCHEMA_FILE))
    return next(found, None)


def jars_of(folder: Path) -> Path | None:
    """Return the folder of Spark's jars, which projects may share: the nearest `.jars`, upward."""
    return next((each / JARS for each in _upward(folder) if os.path.isdir(each / JARS)), None)


def _upward(folder: Path) -> Iterator[Path]:
    """Yield a folder and those above it, but for those into which every user may write, such as `/tmp`."""
    for each in (folder, *folder.parents):
        with suppress(OSError):
            if not os.stat(each).st_mode & stat.S_IWOTH:
                yield each


class _ProjectSource(DotEnvSettingsSource):
    """The settings of a project: its places, and the variables in its file `.env`, whose relative paths start there."""

    def __init__(self, settings_class: type[BaseSettings]) -> None:
        super().__init__(settings_class, env_file=None)

    def __call__(self) -> dict[str, Any]:
        stated = self.current_state.get("project")
        project = Path(stated).absolute() if stated else project_of(Path.cwd())
        jars = jars_of(project or Path.cwd())
        values = {"jars": str(jars)} if jars else {}
        if project:
            values = self._of_project(project, values)
        # A variable of the environment replaces the one in the file; JSON objects of both would be merged.
        known = self.settings_cls.model_fields.keys() - self.current_state.keys()
        return {name: value for name, value in values.items() if name in known}

    def _of_project(self, project: Path, found: Mapping[str, str]) -> dict[str, Any]:
        self.env_file = project / ".env"
        try:
            self.env_vars = self._load_env_vars()
        except (OSError, UnicodeDecodeError) as error:
            raise ProjectError(f"{self.env_file} cannot be read: {error}", "Let this user read it.") from error
        values = {**_IN_PROJECT, **found, **super().__call__(), "project": str(project)}
        for name in _PLACES:
            if name in values and "://" not in values[name]:
                values[name] = os.path.abspath(project / Path(values[name]).expanduser())
        return values


def _no_project(setting: str) -> ProjectError:
    return ProjectError(
        f"no project found from {Path.cwd()} upward",
        f"`lakehouse new DIR` makes one, or set LAKEHOUSE_PROJECT. Without one, set LAKEHOUSE_{setting.upper()}.",
    )


class ProjectSettings(BaseSettings):
    """Where the project is, and the specs: all that modules need when they are imported.

    To read a place that neither the environment nor a project gives raises `ProjectError`.

    Attributes:
        project: the folder of the project; None if there is none.
        tables: folder of the table specs.
    """

    # An error must not show the value: it may be a password.
    model_config = SettingsConfigDict(
        env_prefix="LAKEHOUSE_", env_ignore_empty=True, frozen=True, hide_input_in_errors=True
    )

    project: ExistingFolder | None = None
    tables: Folder = _OF_PROJECT

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return where settings come from: the arguments, the environment, the project."""
        return init_settings, env_settings, _ProjectSource(settings_cls)

    @model_validator(mode="after")
    def _leave_out_unknown_places(self) -> Self:
        for name in _IN_PROJECT.keys() & self.__dict__.keys():
            if self.__dict__[name] is None:
                del self.__dict__[name]
        return self

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _IN_PROJECT:
                raise _no_project(name)
            return super().__getattr__(name)

    @property
    def expectations(self) -> Path | None:
        """The folder of the project's own expectation classes, beside its specs; None if these are nowhere."""
        tables: Path | None = self.__dict__.get("tables")
        return tables.expanduser().absolute().parent / "expectations" if tables else None


class Settings(ProjectSettings):
    """The settings of this installation.

    Attributes:
        root: folder of the Delta tables, the ledger and leases, or `s3://bucket/prefix`.
        runs: folder of job reports, driver logs and Data Docs; `_millrace` under a root that is a folder.
        keep_runs_days: the number of days for which these are kept.
        keep_commits_days: the number of days for which `ops.commits` keeps contended runs.
        views: a folder or `s3://bucket/prefix` for views of the certified versions, which gates keep up to date; all
            machines share it.
        landing: folder into which source systems deliver their files, or `s3://bucket/prefix`.
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
        gate_reads: which rows a gate reads: `cheaper`, what changed since the last checked version or all rows, by
            their cost; `changes`, what changed, where the results follow from that; `all_rows`.
        gate_proof_after: after how many versions that were checked by what changed a gate reads all rows as well, and
            compares.
        page_wait_s: how many seconds a page of Airflow waits while others read the lakehouse, before it says so.
        plan_files: how many files of one landing folder a backfill plan compares with the ledger, in steps of 5,000:
            100,000 take seconds, and some 100 MB.
        kafka: Kafka cluster -> its client's settings with librdkafka's names, as JSON:
            `{"main": {"bootstrap.servers": "broker:9092"}}`. They may hold secrets, so they are never shown.
        airflow: the Airflow to which `lakehouse run` announces certified versions, as JSON:
            `{"url": ..., "login": ..., "password": ...}`, or `{"url": ..., "token": ...}`.
        metrics_token: the token with which a scraper reads the metrics from the web server.
        metrics_token_file: a file with this token, which is read at each scrape; the setting above wins.
    """

    root: LakeRoot = _OF_PROJECT
    runs: Folder | None = None
    keep_runs_days: int = Field(default=90, ge=1)
    keep_commits_days: int = Field(default=365, ge=1)
    views: ViewsRoot = None
    landing: LandingRoot = _OF_PROJECT
    jars: Folder = _OF_PROJECT
    umask: str = Field(default="027", pattern="^[0-7]{3}$")
    s3_connection: str = ""
    second_person: bool | None = None
    row_values_for: Literal["editors", "log_readers"] = "editors"
    gate_reads: GateReads = "cheaper"
    gate_proof_after: int = Field(default=50, ge=1)
    page_wait_s: float = Field(default=5.0, gt=0)
    plan_files: int = Field(default=100_000, ge=1)
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
        if self.runs:
            return RunPaths(self.runs)
        if isinstance(self.root, Path):
            return RunPaths(self.root / OWN)
        if self.project is None:
            raise _no_project("runs")
        return RunPaths(self.project / "data" / "runs")

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
        names = ("kafka", "second_person", "keep_runs_days", "keep_commits_days", "gate_proof_after")
        others = {name: json.dumps(value) for name in names if (value := getattr(self, name)) is not None}
        return {f"LAKEHOUSE_{name.upper()}": value for name, value in (places | others).items()}
