"""What a second person approves in Airflow: the command line says that it asks nobody, or refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from millrace.errors import ExitCode
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.ledger.quarantine_rows import quarantine, refused

ORDERS = "silver.orders"
FIX = ("--all", "--set", "amount = abs(amount)")
COMMANDS = {
    "gate_override": ("gate", "override", ORDERS, "--version", "2", "--reason", "a holiday"),
    "delete_approval": ("run", "--interval", "2013-01-01", "--allow-deletes"),
    "quarantine_replay": ("quarantine", "replay", ORDERS, *FIX),
    "table_rebuild": ("rebuild", ORDERS, "--allow-deletes"),
    "table_repair": ("repair", "restore", ORDERS, "--to", "1", "--execute", "d87a7bf20cd0", "--why", "net prices"),
    "table_vacuum": ("maintain", "--allow-deletes"),
    "erase_subject": ("erase", "run", "customer", "--subjects", "-", "--request", "R", "--execute", "x", "--why", "y"),
}
ALONE = "ann (nobody else was asked)"


@pytest.fixture(autouse=True)
def ann(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    quarantine(settings.paths, ORDERS, refused(10, "too low"))
    monkeypatch.setenv("LOGNAME", "ann")


@pytest.mark.parametrize("command", [*COMMANDS.values(), ("quarantine", "fix", ORDERS, *FIX)])
def test_it_says_in_whose_name_it_acts_and_that_nobody_else_was_asked(
    lakehouse: Lakehouse, command: tuple[str, ...]
) -> None:
    assert lakehouse(*command).stdout.startswith(f"In the name of {ALONE}.\n")


@pytest.mark.parametrize(("dag", "command"), COMMANDS.items())
def test_it_is_refused_where_a_second_person_must_approve_and_names_the_form_that_asks(
    lakehouse: Lakehouse, settings: Settings, monkeypatch: pytest.MonkeyPatch, dag: str, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("LAKEHOUSE_SECOND_PERSON", "true")
    answer = lakehouse(*command)
    assert (answer.exit_code, answer.stdout) == (ExitCode.WRONG_USAGE, "")
    cause, way_out = answer.stderr.splitlines()
    assert cause.startswith("a second person must approve this (LAKEHOUSE_SECOND_PERSON)")
    assert way_out.startswith(f"In Airflow, trigger the DAG {dag}: its form asks")
    assert requests_in(settings) == []


@pytest.mark.parametrize(
    "command",
    [
        ("quarantine", "replay", ORDERS, "--all"),
        ("quarantine", "fix", ORDERS, *FIX, "--dry-run"),
        ("rebuild", ORDERS, "--dry-run"),
        ("rebuild", ORDERS, "--cancel"),
        ("rebuild", ORDERS, "--undo"),
    ],
)
def test_nobody_need_approve_what_no_form_asks_about(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("LAKEHOUSE_SECOND_PERSON", "true")
    assert lakehouse(*command).exit_code == ExitCode.SPARK_UNAVAILABLE, "it goes on to start Spark"


def test_the_requests_of_a_driver_say_that_nobody_else_was_asked(lakehouse: Lakehouse, settings: Settings) -> None:
    for command in (COMMANDS["table_rebuild"], ("rebuild", ORDERS, "--undo")):
        assert lakehouse(*command).exit_code == ExitCode.SPARK_UNAVAILABLE
    assert [request["said_by"] for request in requests_in(settings)] == [ALONE] * 2


def test_values_that_a_person_gives_are_not_kept_beside_the_reports(
    lakehouse: Lakehouse, settings: Settings, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.json"
    rows.write_text(lakehouse("quarantine", "show", ORDERS, "--json").stdout)
    for command in (("quarantine", "fix", ORDERS, "--rows", str(rows)), COMMANDS["quarantine_replay"]):
        assert lakehouse(*command).exit_code == ExitCode.SPARK_UNAVAILABLE
    assert settings.run_paths.reports.is_dir()
    assert requests_in(settings) == []


def requests_in(settings: Settings) -> list[dict[str, Any]]:
    """Return the requests that commands have left for their drivers."""
    return [json.loads(file.read_text()) for file in settings.run_paths.reports.rglob("*.request.json")]
