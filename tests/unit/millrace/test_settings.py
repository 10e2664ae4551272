"""The settings of an installation, and the places, errors and exit codes that follow from them."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from millrace import errors
from millrace.cli.app import app
from millrace.contracts.lake_path import S3Path
from millrace.errors import ExitCode, MillraceError, Outcome, ProjectError
from millrace.paths import SCHEMA_FILE
from millrace.reading.certified import lakehouse_at
from millrace.settings import Settings


def test_another_process_has_the_same_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = {"main": {"bootstrap.servers": "broker:9092", "sasl.password": "s3cret"}}
    places = {"root": tmp_path / "lake", "landing": tmp_path, "tables": tmp_path, "jars": tmp_path}
    settings = Settings(
        **places, kafka=kafka, second_person=False, keep_runs_days=10, keep_commits_days=20, gate_proof_after=7
    )
    for name, value in settings.environment().items():
        monkeypatch.setenv(name, value)
    assert Settings() == settings


def test_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "s3cret" not in repr(Settings(kafka={"main": {"sasl.password": "s3cret"}}))
    monkeypatch.setenv("LAKEHOUSE_AIRFLOW", '{"url": "http://airflow", "login": "me", "password": "s3cret"}')
    monkeypatch.setenv("LAKEHOUSE_METRICS_TOKEN", "s3cret")
    assert "s3cret" not in repr(Settings())
    assert "s3cret" not in str(Settings().environment())
    monkeypatch.setenv("LAKEHOUSE_KAFKA", '{"main": {"sasl.password": 31415926}}')
    with pytest.raises(ValidationError, match="valid string") as refused:
        Settings()
    assert "31415926" not in str(refused.value)


def test_landing_files_and_views_are_in_an_absolute_folder_or_below_a_prefix_of_a_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for given, meant in {"feeds": f"{tmp_path}/feeds", "s3a://lake/feeds/": "s3://lake/feeds"}.items():
        monkeypatch.setenv("LAKEHOUSE_LANDING", given)
        assert Settings().landing == meant
        assert Settings(**Settings().model_dump()) == Settings()
    monkeypatch.setenv("LAKEHOUSE_VIEWS", "s3a://lake/views/")
    assert Settings().views == S3Path("s3://lake/views")
    assert Settings().environment()["LAKEHOUSE_VIEWS"] == "s3://lake/views"


@pytest.mark.parametrize(
    ("name", "value", "cause"),
    [
        ("LANDING", "s3://", "s3:// cannot hold files: write a folder, or s3://bucket/prefix"),
        ("LANDING", "hdfs://lake/feeds", "hdfs://lake/feeds cannot hold files: write a folder, or s3://bucket/prefix"),
    ],
)
def test_a_wrong_setting_ends_a_command_with_one_line_that_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, cause: str
) -> None:
    monkeypatch.setenv(f"LAKEHOUSE_{name}", value)
    answer = CliRunner().invoke(app, ["tables"])
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr == f"LAKEHOUSE_{name}: {cause}\n"


def test_a_setting_that_is_not_json_is_named_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_KAFKA", '{"main": {"sasl.password": "s3cret')
    ended = CliRunner().invoke(app, ["tables"])
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "kafka" in ended.stderr
    assert "LAKEHOUSE_KAFKA" in ended.stderr
    assert "s3cret" not in ended.stderr


def test_an_empty_variable_sets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise an empty folder would be the current one."""
    unset = Settings()
    for name in ("VIEWS", "METRICS_TOKEN_FILE", "AIRFLOW", "ROOT"):
        monkeypatch.setenv(f"LAKEHOUSE_{name}", "")
    assert Settings() == unset


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, with the working folder deep below it, and none of the settings in the environment."""
    for name in os.environ:
        if name.startswith("LAKEHOUSE_"):
            monkeypatch.delenv(name)
    below = tmp_path / "shop" / "tables" / "silver" / "shop"
    below.mkdir(parents=True)
    (tmp_path / "shop" / SCHEMA_FILE).touch()
    monkeypatch.chdir(below)
    return tmp_path / "shop"


def test_a_project_is_found_upward_and_has_the_places(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = {"root": "data/lakehouse", "tables": "tables", "jars": ".jars"}
    found = Settings()
    assert (found.project, found.landing) == (project, str(project / "data/landing"))
    assert {name: getattr(found, name) for name in places} == {name: project / at for name, at in places.items()}
    assert found.run_paths.folder == project / "data/lakehouse/_millrace"
    monkeypatch.setenv("LAKEHOUSE_ROOT", "s3://lake/tables")
    assert Settings().run_paths.folder == project / "data/runs"
    assert found.expectations == project / "expectations"


def test_the_file_of_a_project_has_settings_but_the_environment_wins(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / ".env").write_text(
        "# where files are\n"
        "LAKEHOUSE_JARS=../jars\n"
        "LAKEHOUSE_LANDING=feeds\n"
        "LAKEHOUSE_ROOT=s3://lake/tables\n"
        "LAKEHOUSE_METRICS_TOKEN=s3cret\n"
        "LAKEHOUSE_NO_SUCH_SETTING=1\n"
        "OTHER=1\n"
        """LAKEHOUSE_KAFKA='{"main": {"sasl.password": "of the file"}}'\n"""
    )
    found = Settings()
    assert (found.jars, found.landing) == (project.parent / "jars", str(project / "feeds")), "as others write them"
    assert (str(found.root), found.metrics_token.get_secret_value()) == ("s3://lake/tables", "s3cret")
    monkeypatch.setenv("LAKEHOUSE_LANDING", "elsewhere")
    monkeypatch.setenv("LAKEHOUSE_KAFKA", '{"main": {"bootstrap.servers": "broker:9092"}}')
    found = Settings()
    assert found.landing == str(Path.cwd() / "elsewhere")
    assert found.kafka == {"main": {"bootstrap.servers": "broker:9092"}}, "not mixed with another password"
    (project / ".env").write_bytes(b"\xff")
    with pytest.raises(ProjectError, match=r"shop/\.env cannot be read"):
        Settings()


def test_projects_share_the_jars_of_a_folder_above_and_commands_find_them_without_a_project(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Settings().jars == project / ".jars"
    (shared := project.parent / ".jars").mkdir()
    assert Settings().jars == shared
    (project / ".jars").mkdir()
    assert Settings().jars == project / ".jars"
    monkeypatch.chdir(project.parent)
    assert (Settings().project, Settings().jars) == (None, shared)
    project.parent.chmod(0o1777)
    assert "jars" not in dict(Settings()), "as in /tmp, any user could have put them there"
    monkeypatch.setenv("LAKEHOUSE_JARS", "/srv/jars")
    assert Settings().jars == Path("/srv/jars")


def test_a_stated_project_is_used_from_everywhere_and_must_exist(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAKEHOUSE_PROJECT", "shop")
    assert Settings().tables == project / "tables"
    assert Settings().environment()["LAKEHOUSE_PROJECT"] == str(project)
    monkeypatch.setenv("LAKEHOUSE_PROJECT", "none")
    answer = CliRunner().invoke(app, ["tables"])
    assert (answer.exit_code, answer.stderr) == (2, "LAKEHOUSE_PROJECT: there is no folder none\n")


def test_without_a_project_only_what_needs_one_fails(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in ("check", "tables", "run --interval 2025-07-01"):
        answer = CliRunner().invoke(app, command.split())
        assert (answer.exit_code, answer.stdout) == (ExitCode.WRONG_USAGE, "")
        cause, way_out = answer.stderr.strip().split("\n")
        assert cause == f"no project found from {tmp_path} upward"
        assert "`lakehouse new DIR` makes one, or set LAKEHOUSE_PROJECT" in way_out
    for command in ("--help", "run --help", "schema"):
        assert CliRunner().invoke(app, command.split()).exit_code == 0, command
    monkeypatch.setenv("LAKEHOUSE_ROOT", str(tmp_path / "lake"))
    assert CliRunner().invoke(app, ["query", "SELECT 1"]).exit_code == 0, "the root is enough for a reader"
    assert lakehouse_at().root == tmp_path / "lake"
    monkeypatch.setenv("LAKEHOUSE_TABLES", str(project / "tables"))
    assert "no table spec at all" in CliRunner().invoke(app, ["plan", "--interval", "2025-07-01"]).stderr
    with pytest.raises(ProjectError, match="Without one, set LAKEHOUSE_JARS"):
        _ = Settings().jars
    code = "import millrace.contracts.spec.expectation_arguments as own; assert own.CUSTOM_EXPECTATIONS == {}"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_an_error_has_the_exit_code_of_its_outcome_unless_a_person_used_a_command_wrongly() -> None:
    found = {name: kind for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)}
    assert len(found) > 15
    assert all(issubclass(kind, MillraceError) for kind in found.values())
    others = {name for name, kind in found.items() if kind.exit_code.name != kind.outcome.name}
    assert others == {"UnknownNameError", "QueryError", "ApprovalError", "ProjectError"}
    inconsistent = {name for name, kind in found.items() if kind.outcome is Outcome.INCONSISTENT}
    assert inconsistent == {"TornLogError", "ConservationError"}


def test_no_two_exit_codes_are_the_same_and_only_ok_is_zero() -> None:
    assert len({int(code) for code in ExitCode}) == len(ExitCode.__members__)
    assert [code for code in ExitCode if code == 0] == [ExitCode.OK]
    assert all(0 <= code < 126 for code in ExitCode), "a shell uses the codes from 126 on for itself"
