"""`lakehouse hold`: tables of which nothing is deleted, for whom and why, until they are released."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from deltalake import DeltaTable

from millrace.catalog import load_catalog
from millrace.control.ops_tables import OpsTables
from millrace.errors import ExitCode
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.ledger.delta_tables import append, create_table_of
from tests.support.ledger.quarantine_rows import quarantine, refused

ORDERS = "silver.orders"


@pytest.fixture
def path(settings: Settings) -> Path:
    """A table with a file that is due, and with a quarantine."""
    path = Path(str(settings.paths.table(ORDERS)))
    create_table_of(load_catalog(settings.tables).spec(ORDERS), path)
    append(path)
    (path / "stray.parquet").write_bytes(b"12345")
    os.utime(path / "stray.parquet", (0, 0))
    quarantine(settings.paths, ORDERS, refused(1))
    return path


def cleans_log(path: Path) -> str | None:
    table = DeltaTable(str(path))
    assert table.protocol().min_reader_version == 1
    return table.metadata().configuration.get("delta.enableExpiredLogCleanup")


def test_nothing_of_a_held_table_is_deleted_until_its_last_hold_is_released(
    lakehouse: Lakehouse, settings: Settings, path: Path
) -> None:
    def planned() -> list[str]:
        return [each["step"] for each in json.loads(lakehouse("maintain", "--plan", "--json").stdout)]

    beside = Path(str(settings.paths.quarantine(ORDERS)))
    assert planned() == ["vacuum"]
    set_ = lakehouse("hold", "set", "case-17", ORDERS, "gold.revenue_daily", "--why", "court order 4 of 2026")
    assert set_.exit_code == 0, set_.output
    assert cleans_log(path) == cleans_log(beside) == "false", "else Delta forgets which files a version has"
    assert planned() == []
    health = lakehouse("health", ORDERS).stdout
    assert "VACUUM held back" in health
    assert "court order 4 of 2026" in health
    version = DeltaTable(str(path)).version()
    assert lakehouse("hold", "set", "case-17", ORDERS, "--why", "again").exit_code == 0
    assert lakehouse("hold", "set", "audit", ORDERS, "--why", "year 2025").exit_code == 0
    assert DeltaTable(str(path)).version() == version, "nothing to write"
    listed = json.loads(lakehouse("hold", "list", "--json").stdout)
    assert [(each["table"], each["name"], each["why"]) for each in listed] == [
        ("gold.revenue_daily", "case-17", "court order 4 of 2026"),
        (ORDERS, "case-17", "court order 4 of 2026"),
        (ORDERS, "audit", "year 2025"),
    ]
    assert lakehouse("hold", "release", "case-17", "--why", "closed").exit_code == 0
    assert (planned(), cleans_log(path)) == ([], "false"), "the audit still holds it"
    assert lakehouse("hold", "release", "audit", "--why", "done").exit_code == 0
    assert (planned(), cleans_log(path), cleans_log(beside)) == (["vacuum"], "true", "true")
    assert OpsTables(settings.paths).holds.active() == []


def test_a_table_that_was_built_after_the_hold_keeps_its_log_from_the_next_maintenance_on(
    lakehouse: Lakehouse, settings: Settings
) -> None:
    assert lakehouse("hold", "set", "case-17", ORDERS, "--why", "court order").exit_code == 0
    path = Path(str(settings.paths.table(ORDERS)))
    create_table_of(load_catalog(settings.tables).spec(ORDERS), path)
    quarantine(settings.paths, ORDERS, refused(1))
    for version in (1, 1):
        assert lakehouse("maintain", "--table", ORDERS).exit_code == 0
        assert cleans_log(path) == cleans_log(Path(str(settings.paths.quarantine(ORDERS)))) == "false"
        assert DeltaTable(str(path)).version() == version, "once"


def test_a_hold_of_an_unknown_table_and_the_release_of_an_unknown_hold_are_refused(
    lakehouse: Lakehouse, settings: Settings
) -> None:
    unknown = lakehouse("hold", "set", "case-17", ORDERS, "silver.unknown", "--why", "x")
    assert unknown.exit_code == ExitCode.WRONG_USAGE
    assert OpsTables(settings.paths).holds.active() == [], "none of them is held"
    answer = lakehouse("hold", "release", "case-18", "--why", "x")
    assert (answer.exit_code, answer.stderr.split("\n")[0]) == (ExitCode.FAILED, "No table has the hold 'case-18'")
