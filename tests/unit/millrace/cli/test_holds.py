"""`lakehouse hold`: tables of which nothing is deleted, for whom and why, until they are released."""

from __future__ import annotations

import json
import os
import re
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from millrace.catalog import load_catalog
from millrace.clock import utc_now
from millrace.contracts.spec.common_settings import ConflictSpec
from millrace.control.changes.table_properties import KeptFor, log_kept_for
from millrace.control.leases.leases import Leases
from millrace.control.leases.store import lakehouse_leases
from millrace.control.ledger.holds import HoldEvent
from millrace.control.log.property_commits import set_properties
from millrace.control.maintenance import holding
from millrace.control.maintenance.holding import hold_tables, release_hold
from millrace.control.ops_tables import OpsTables
from millrace.errors import ExitCode
from millrace.overview.attention import Attention, Remedy, Trouble, attention_needed
from millrace.overview.lakehouse import LakehouseReader, no_failed_tasks
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.ledger.delta_tables import append, commit_file, create_table_of, judge, optimize
from tests.support.ledger.quarantine_rows import quarantine, refused

ORDERS, CLEANS_LOG = "silver.orders", "delta.enableExpiredLogCleanup"


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
    return table.metadata().configuration.get(CLEANS_LOG)


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
    assert DeltaTable(str(path)).version() == version, "nothing to write"
    assert lakehouse("hold", "set", "audit", ORDERS, "--why", "year 2025").exit_code == 0
    listed = json.loads(lakehouse("hold", "list", "--json").stdout)
    assert [(each["table"], each["name"], each["why"]) for each in listed] == [
        ("gold.revenue_daily", "case-17", "court order 4 of 2026"),
        (ORDERS, "case-17", "court order 4 of 2026"),
        (ORDERS, "audit", "year 2025"),
    ]
    assert lakehouse("hold", "release", "case-17", "--why", "closed").exit_code == 0
    assert (planned(), cleans_log(path)) == ([], "false"), "the audit still holds it"
    assert lakehouse("hold", "release", "audit", "--why", "done").exit_code == 0
    assert (planned(), OpsTables(settings.paths).holds.active()) == (["vacuum"], [])
    assert cleans_log(path) == "false", "until the next maintenance, which knows the readers"
    (path / "stray.parquet").unlink()
    assert lakehouse("maintain").exit_code == 0
    assert cleans_log(path) == cleans_log(beside) == "true"


def test_a_table_that_says_that_it_is_held_stays_so_if_the_hold_was_lost(
    lakehouse: Lakehouse, settings: Settings, path: Path
) -> None:
    set_properties(path, {CLEANS_LOG: "false"}, "another tool")
    plan = lakehouse("maintain", "--plan", "--json")
    assert [each["step"] for each in json.loads(plan.stdout)] == ["vacuum"], "somebody keeps the log, and no more"
    assert lakehouse("hold", "set", "case-17", ORDERS, "--why", "court order").exit_code == 0
    shutil.rmtree(str(settings.paths.ops("holds")))
    assert "needs a person" in lakehouse("health", ORDERS).stdout
    listed = lakehouse("hold", "list", "--json")
    assert listed.stdout == "[]\n"
    assert f"{ORDERS}: the table itself says that it is held (millrace.log_kept_for)" in listed.stderr
    answer = lakehouse("maintain")
    assert (answer.exit_code, answer.stderr.split("\n")[:2]) == (ExitCode.FAILED, [
        f"{ORDERS}: VACUUM refused: the table itself says that it is held (millrace.log_kept_for), but ops.holds has "
        "no such hold",
        "Restore ops/holds from a backup, or set the hold again (lakehouse hold set), and release it if it has ended.",
    ])  # fmt: skip
    assert cleans_log(path) == "false"
    assert (path / "stray.parquet").exists()
    [item] = needed(settings)
    assert (item.table.table, item.kind, item.action) == (ORDERS, Trouble.HEALTH, Remedy.STORAGE)
    assert item.cause.startswith("VACUUM is refused: the table itself says that it is held (millrace.log_kept_for)")
    for arguments in (("set", "case-17", ORDERS), ("release", "case-17")):
        assert lakehouse("hold", *arguments, "--why", "its end").exit_code == 0
        assert needed(settings) == [], "at once, before the next maintenance has measured it"
    assert [each["step"] for each in json.loads(lakehouse("maintain", "--plan", "--json").stdout)] == ["vacuum"]


def needed(settings: Settings) -> list[Attention]:
    tables = LakehouseReader(settings.paths, settings.tables).read(utc_now(), no_failed_tasks)
    return attention_needed(tables, utc_now())


def test_a_hold_that_the_ledger_has_lost_outlives_the_release_of_another_one(
    lakehouse: Lakehouse, settings: Settings, path: Path
) -> None:
    for name in ("case-17", "audit"):
        assert lakehouse("hold", "set", name, ORDERS, "--why", "court order").exit_code == 0
    shutil.rmtree(str(settings.paths.ops("holds")))
    assert lakehouse("hold", "set", "case-17", ORDERS, "--why", "court order").exit_code == 0
    assert lakehouse("hold", "release", "case-17", "--why", "closed").exit_code == 0
    assert OpsTables(settings.paths).holds.active() == []
    stored = DeltaTable(str(path)).metadata().configuration
    assert (log_kept_for(stored), stored["millrace.holds"]) == (KeptFor.HOLDS, '["audit"]')
    assert lakehouse("maintain", "--table", ORDERS).exit_code == ExitCode.FAILED
    assert (path / "stray.parquet").exists()
    for arguments in (("set", "audit", ORDERS), ("release", "audit")):
        assert lakehouse("hold", *arguments, "--why", "its end").exit_code == 0
    assert [each["step"] for each in json.loads(lakehouse("maintain", "--plan", "--json").stdout)] == ["vacuum"]


def test_a_log_that_somebody_else_keeps_is_kept_after_a_hold_as_well(
    lakehouse: Lakehouse, settings: Settings, path: Path
) -> None:
    (path / "stray.parquet").unlink()
    set_properties(path, {CLEANS_LOG: "false"}, "another tool")
    for arguments in (("set", "case-17", ORDERS), ("release", "case-17")):
        assert lakehouse("hold", *arguments, "--why", "x").exit_code == 0
        assert cleans_log(path) == "false"
    for _ in range(2):
        assert lakehouse("maintain").exit_code == 0
        assert log_kept_for(DeltaTable(str(path)).metadata().configuration) is KeptFor.NOBODY
        assert (cleans_log(path), cleans_log(Path(str(settings.paths.quarantine(ORDERS))))) == ("false", "true")


def test_a_table_with_features_that_only_spark_writes_says_what_sets_its_hold_and_is_released(
    lakehouse: Lakehouse, settings: Settings, path: Path
) -> None:
    commit = commit_file(path, 0)
    actions = [json.loads(line) for line in commit.read_text().split("\n") if line]
    for action in actions:
        if "protocol" in action:
            action["protocol"] |= {"minWriterVersion": 7, "writerFeatures": ["identityColumns"]}
    commit.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    answer = lakehouse("hold", "set", "case-17", ORDERS, "--why", "court order")
    assert answer.exit_code == ExitCode.FAILED
    assert "it has features: identityColumns" in answer.stderr
    assert "delta.enableExpiredLogCleanup = false, millrace.log_kept_for = holds" in answer.stderr
    assert [hold.name for hold in OpsTables(settings.paths).holds.on(ORDERS)] == ["case-17"], "nothing is deleted"
    maintained = lakehouse("maintain")
    assert "Set them with Spark" in maintained.stderr
    assert "gold.revenue_daily: not built yet" in maintained.stdout, "no other table is left out"
    released = lakehouse("hold", "release", "case-17", "--why", "closed")
    assert released.exit_code == 0, released.stderr
    assert OpsTables(settings.paths).holds.active() == []


def test_the_log_of_a_table_is_kept_while_a_reader_is_in_danger(lakehouse: Lakehouse, settings: Settings) -> None:
    spec = load_catalog(settings.tables).spec(ORDERS)
    path = Path(str(settings.paths.table(ORDERS)))
    create_table_of(spec, path)
    certified = append(path)
    judge(Path(str(settings.root)), spec, certified)
    replaced = commit_file(path, append(path))
    replaced.write_text(re.sub(r'"timestamp":\d+', '"timestamp":0', replaced.read_text()))
    for _ in range(2):
        answer = lakehouse("maintain", "--table", ORDERS)
        assert answer.exit_code == ExitCode.FAILED
        assert "VACUUM refused: readers of the certified version (version 1) would soon be cut off" in answer.stderr
        assert (cleans_log(path), DeltaTable(str(path)).version()) == ("false", 3), "once"
    DeltaTable(str(path)).create_checkpoint()
    times = {file: file.stat().st_mtime for file in (path / "_delta_log").iterdir()}
    for days, file in enumerate(sorted(times), 31):
        os.utime(file, (times[file] - days * 86400,) * 2)
    while append(path) < 11:
        pass  # the tenth commit writes a checkpoint, and cleans the log
    assert DeltaTable(str(path), version=certified).to_pyarrow_table().num_rows == 1
    for file, time in times.items():
        os.utime(file, (time, time))
    judge(Path(str(settings.root)), spec, optimize(path))
    assert lakehouse("maintain", "--table", ORDERS).exit_code == 0
    assert cleans_log(path) == "true"


def test_a_writer_that_does_not_end_stops_only_the_keeping_of_its_own_table_s_log(
    lakehouse: Lakehouse, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    ops, catalog, tables = OpsTables(settings.paths), load_catalog(settings.tables), (ORDERS, "gold.revenue_daily")
    for table in tables:
        create_table_of(catalog.spec(table), Path(str(settings.paths.table(table))))
    ops.holds.record(HoldEvent.SET, "case-17", tables, said_by="ann", why="court order")
    monkeypatch.setattr(holding, "DEFAULT_CONFLICTS", ConflictSpec(wait_for_lease="1 seconds"))
    with lakehouse_leases(settings.paths, "a writer", timedelta(seconds=1)).table(ORDERS):
        answer = lakehouse("maintain")
    assert answer.exit_code == ExitCode.CONFLICT
    assert "a writer" in answer.stderr
    kept = {table: cleans_log(Path(str(settings.paths.table(table)))) for table in tables}
    assert kept == {ORDERS: None, "gold.revenue_daily": "false"}


@pytest.mark.parametrize("name", ["audit", "case-17"])
def test_a_hold_that_is_set_while_one_is_released_holds(
    settings: Settings, path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ops, meanwhile = OpsTables(settings.paths), [True]
    said = {"said_by": "ann", "why": "court order", "run_id": "test", "ops": ops}
    hold_tables("case-17", [ORDERS], **said)

    def leases_later(*args: Any) -> Leases:
        """Set and release at once: the one ends before the other has the lease."""
        if meanwhile and meanwhile.pop():
            hold_tables("audit", [ORDERS], **said) if name == "audit" else release_hold("case-17", **said)
        return lakehouse_leases(*args)

    monkeypatch.setattr(holding, "lakehouse_leases", leases_later)
    release_hold("case-17", **said) if name == "audit" else hold_tables("case-17", [ORDERS], **said)
    assert ([hold.name for hold in ops.holds.active()], cleans_log(path)) == ([name], "false")
    assert log_kept_for(DeltaTable(str(path)).metadata().configuration) is KeptFor.HOLDS


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
