"""`lakehouse new`: a folder in which the other commands work at once, from each of its subfolders."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from millrace.cli.app import app
from millrace.errors import ExitCode
from millrace.settings import Settings
from tests.support.ledger.delta_tables import file_contents


def lakehouse(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new project, which is the working folder; nothing else says where anything is."""
    for name in os.environ:
        if name.startswith("LAKEHOUSE_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    answer = lakehouse("new", "shop")
    assert answer.exit_code == 0, answer.output
    assert [line.strip() for line in answer.stdout.split("\n")[1:3]] == ["cd shop", "lakehouse jars"]
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def test_its_specs_are_right_and_its_days_are_planned_from_every_subfolder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (project, project / "tables" / "silver", project / "data"):
        monkeypatch.chdir(folder)
        assert "every spec is fine" in lakehouse("check").stdout
        planned = lakehouse("plan", "--interval", "2025-07-01")
        assert (planned.exit_code, "1 new of 1 file" in planned.stdout) == (0, True), planned.output
        assert "order_id" in lakehouse("infer", "orders").stdout
    assert Settings().root == project / "data" / "lakehouse"


def test_a_domain_is_laid_out_within_it(project: Path) -> None:
    (project / "data/landing/tickets").mkdir()
    (project / "data/landing/tickets/a.csv").write_text("id,amount\n1,2\n2,3\n")
    before = set(file_contents(project))
    answer = lakehouse("init", "support", "data/landing/tickets")
    assert answer.exit_code == 0, answer.output
    specs = {f"tables/{layer}/support/tickets.yaml" for layer in ("bronze", "silver")}
    assert set(file_contents(project)) - before == {*specs, "dags/support.py"}
    assert lakehouse("check").exit_code == 0


def test_its_own_tests_pass_and_find_a_wrong_spec(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # its tests need none of those that are installed here
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    assert subprocess.run(command, cwd=project, check=False).returncode == 0
    spec = project / "tables/silver/shop/orders.yaml"
    spec.write_text(spec.read_text().replace("keys:", "keyz:"))
    failed = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert (failed.returncode, "did you mean 'keys'" in failed.stdout) == (1, True)


def test_jars_that_are_there_are_used_and_secrets_and_data_stay_out_of_git(tmp_path: Path, project: Path) -> None:
    (project / ".jars").mkdir()
    (project / ".jars" / "spark.jar").touch()
    (tmp_path / "second" / ".git").mkdir(parents=True)
    answer = lakehouse("new", str(tmp_path / "second"))
    assert "lakehouse jars" not in answer.stdout
    assert (tmp_path / "second/.env").read_text().endswith(f"\nLAKEHOUSE_JARS={project / '.jars'}\n")
    subprocess.run(["git", "init", "--quiet"], cwd=project, check=True)
    ignored = [".env", ".jars/spark.jar", "data/landing/orders/date=2025-07-01/orders.json"]
    kept = ["tables/bronze/shop/orders.yaml", "dags/shop.py", "table_spec.schema.json"]
    found = subprocess.run(
        ["git", "check-ignore", *ignored, *kept], cwd=project, capture_output=True, text=True, check=False
    )
    assert found.stdout.split() == ignored


def test_a_folder_with_files_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    for folder in (tmp_path, tmp_path / "notes.txt"):
        answer = lakehouse("new", str(folder))
        assert (answer.exit_code, answer.stdout) == (ExitCode.WRONG_USAGE, "")
        assert answer.stderr == f"{folder} is not an empty folder\nNothing was written. Name a new folder.\n"
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]
