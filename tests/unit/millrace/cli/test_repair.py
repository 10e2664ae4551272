"""`lakehouse repair`: what it prints, for people and for programs, and the command that it ends with."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from millrace.errors import ExitCode
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.documents.specs import bronze_spec
from tests.support.ledger.delta_tables import delete_all, judge, load_batch

SPEC = bronze_spec()
ORDERS = SPEC.table


@pytest.fixture(autouse=True)
def orders(settings: Settings) -> None:
    """A table of two certified versions, whose rows another tool has deleted since."""
    root = settings.paths.root
    for rows in (2, 3):
        judge(root, SPEC, load_batch(root, SPEC, rows=rows).version)  # type: ignore[arg-type]
    delete_all(settings.paths.table(ORDERS))  # type: ignore[arg-type]


def test_it_shows_what_changes_and_its_last_line_does_just_that(lakehouse: Lakehouse, settings: Settings) -> None:
    shown = lakehouse("repair", "restore", ORDERS, "--to", "1").stdout.splitlines()
    assert shown[:2] == [
        f"{ORDERS}: version 4 would have the rows of version 1. Nothing was written.",
        "Rows: 0 now, 2 after: 2 inserted, 0 updated, 0 deleted",
    ]
    assert "  batch 2 (version 2), 2013-01-02, run run-2: 3 rows" in shown
    assert any(line.startswith("Also undone: version 3, DELETE by delta-rs") for line in shown)
    assert "Readers: version 2 now, version 4 after" in shown
    command = shown[-1].removeprefix("To do exactly this: lakehouse ").removesuffix(" ...")
    answer = lakehouse(*shlex.split(command), "a wrong delete")
    assert "Readers use version 4." in answer.stdout.splitlines(), answer.stderr
    assert lakehouse("repair", "restore", ORDERS, "--to", "3").exit_code is ExitCode.BAD_INPUT


def test_a_restore_of_a_held_table_keeps_its_log(lakehouse: Lakehouse, settings: Settings) -> None:
    assert lakehouse("hold", "set", "case-17", ORDERS, "--why", "court order").exit_code == 0
    [plan] = json.loads(lakehouse("repair", "restore", ORDERS, "--to", "1", "--json").stdout)
    answer = lakehouse("repair", "restore", ORDERS, "--to", "1", "--execute", plan["id"], "--why", "a wrong delete")
    assert answer.exit_code == 0, answer.stderr
    table = DeltaTable(str(settings.paths.table(ORDERS)))
    assert table.to_pyarrow_table().num_rows == 2
    assert table.metadata().configuration["delta.enableExpiredLogCleanup"] == "false", "not as it was before the hold"


def test_a_restore_to_a_version_of_an_ended_hold_does_not_bring_the_hold_back(
    lakehouse: Lakehouse, settings: Settings
) -> None:
    assert lakehouse("hold", "set", "case-17", ORDERS, "--why", "court order").exit_code == 0
    root = settings.paths.root
    held = load_batch(root, SPEC, rows=1)  # type: ignore[arg-type]
    judge(root, SPEC, held.version)  # type: ignore[arg-type]
    assert lakehouse("hold", "release", "case-17", "--why", "closed").exit_code == 0
    judge(root, SPEC, load_batch(root, SPEC, rows=2).version)  # type: ignore[arg-type]
    [plan] = json.loads(lakehouse("repair", "restore", ORDERS, "--to", str(held.version), "--json").stdout)
    command = shlex.split(plan["command"])[1:]
    assert lakehouse(*command, "--why", "a wrong delivery").exit_code == 0
    assert "itself says that it is held" not in lakehouse("hold", "list").output


def test_programs_get_all_of_it(lakehouse: Lakehouse) -> None:
    [plan] = json.loads(lakehouse("repair", "restore", ORDERS, "--to", "1", "--json").stdout)
    assert (plan["makes_version"], plan["inserted"], plan["restores"], plan["certified"]) == (4, 2, 1, 2)
    assert plan["command"].endswith(f"--execute {plan['id']}")


def test_a_backup_names_the_command_that_copies_it_back_and_that_the_one_that_does_it(
    lakehouse: Lakehouse, settings: Settings, tmp_path: Path
) -> None:
    folder = tmp_path / "a backup"
    taken = lakehouse("repair", "backup", ORDERS, "--to", str(folder))
    assert f"{ORDERS}: version 2 is in {folder}: 5 rows, " in taken.stdout, taken.output
    shutil.move(next(Path(str(settings.paths.table(ORDERS))).glob("*.parquet")), tmp_path)
    copy = shlex.split(taken.stdout.splitlines()[-1].removeprefix("To copy it back: lakehouse "))
    shown = lakehouse(*copy)
    assert f"Copied back from {folder}, taken " in shown.stdout, shown.output
    assert ": 1 file, " in shown.stdout
    command = shown.stdout.splitlines()[-1].removeprefix("To do exactly this: lakehouse ").removesuffix(" ...")
    done = lakehouse(*shlex.split(command), "a wrong delete")
    assert "has the rows of version 2" in done.stdout, done.stderr
    assert DeltaTable(str(settings.paths.table(ORDERS))).to_pyarrow_table().num_rows == 5
    for both in ([], ["--to", "1", "--from", str(folder)]):
        assert lakehouse("repair", "restore", ORDERS, *both).exit_code == ExitCode.WRONG_USAGE


def test_what_is_neither_a_version_nor_a_time_is_refused(lakehouse: Lakehouse) -> None:
    answer = lakehouse("repair", "restore", ORDERS, "--to", "yesterday")
    assert (answer.exit_code, answer.stdout) == (ExitCode.BAD_INPUT, "")
    assert "Write a version such as 12, or a time" in answer.stderr
    early = lakehouse("repair", "restore", ORDERS, "--to", "2013-01-01T10:00")
    assert "no version was certified at 2013-01-01 10:00" in early.stderr
