"""The paths and the ledger of a rebuild."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path

import pytest

from millrace.control.changes.staging import StagedDeletes, copy_ledger, copy_loads, remove_staging, staged_paths
from millrace.control.gates.gates import Gates
from millrace.control.ledger.deletes import DeleteRecords, Deletes, are_allowed
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import resolve
from millrace.control.log.batch import BatchSources, FileFact, Stream, Winner
from millrace.paths import LakehousePaths
from tests.support.documents.specs import bronze_spec, silver_spec
from tests.support.ledger.delta_tables import day, file_contents, intent_of, judge, load_batch

BRONZE, SILVER = bronze_spec(), silver_spec()


def test_the_tables_that_it_builds_are_in_its_folder_and_all_others_in_place() -> None:
    staged = staged_paths(LakehousePaths(Path("/lake")), "r1", ["silver.orders"])
    folder = "/lake/_millrace/rebuilds/r1"
    assert staged.table("bronze.orders").as_posix() == "/lake/bronze/orders"
    assert staged.quarantine("bronze.orders").as_posix() == "/lake/bronze_quarantine/orders"
    assert staged.table("silver.orders").as_posix() == f"{folder}/silver/orders"
    assert staged.quarantine("silver.orders").as_posix() == f"{folder}/silver_quarantine/orders"
    assert staged.tombstones("silver.orders", "5b0e").as_posix() == f"{folder}/silver_tombstones/orders/5b0e"
    assert staged.ops("gates").as_posix() == f"{folder}/ops/gates"
    assert staged.leases.as_posix() == f"{folder}/_millrace/leases"


def test_its_ledger_has_the_events_of_the_tables_that_it_reads_and_changes_nothing_of_the_lakehouse(
    tmp_path: Path,
) -> None:
    live = LakehousePaths(tmp_path)
    staged = staged_paths(live, "r1", [SILVER.table])
    for versions in (1, 2):
        winner = load_batch(tmp_path, BRONZE)
        judge(tmp_path, BRONZE, winner.version)
        lake = file_contents(tmp_path / "ops")
        copy_ledger(live, staged, [BRONZE.table])
        assert file_contents(tmp_path / "ops") == lake
        assert Gates(staged).certified(BRONZE.table) == versions
        position = resolve(staged.table(BRONZE.table), Stream(BRONZE.table), Ledger(staged))
        assert position.last == winner
    remove_staging(staged)
    assert file_contents(tmp_path / "ops") == lake
    assert not list(live.rebuilds.iterdir())


def test_after_a_switch_its_ledger_has_the_events_of_the_lakehouse(tmp_path: Path) -> None:
    live, winner = LakehousePaths(tmp_path), load_batch(tmp_path, BRONZE)
    judge(tmp_path, BRONZE, winner.version)
    staged = staged_paths(live, "r1", [SILVER.table])
    for folder in ("bronze", "ops"):  # as if it were built here: the same id, and another history
        shutil.copytree(tmp_path / folder, Path(staged.staging) / folder)
    judge(Path(staged.staging), BRONZE, load_batch(Path(staged.staging), BRONZE).version)

    copy_ledger(live, staged, [BRONZE.table])

    assert Gates(staged).certified(BRONZE.table) == winner.version
    assert resolve(staged.table(BRONZE.table), Stream(BRONZE.table), Ledger(staged)).last == winner


def test_a_file_that_a_person_gave_up_stays_given_up(tmp_path: Path) -> None:
    live, staged = LakehousePaths(tmp_path), staged_paths(LakehousePaths(tmp_path), "r1", [BRONZE.table])
    table, broken = BRONZE.table, FileFact("orders/cut.json", 7, 1, "aa", "cut")
    Ledger(live).record_files(FileEvent.FAILED, table, "old", day(1), [broken])
    Ledger(live).record_files(FileEvent.GIVEN_UP, table, "old", day(1), [broken])
    Ledger(staged).record_files(FileEvent.FAILED, table, "new", day(1), [broken])
    for _ in range(2):
        copy_loads(live, staged, table, ("old", "new"), 7)
    (failure,) = Ledger(live).failures(table, "new").values()
    assert (failure.given_up, failure.attempts) == (True, 2)


@pytest.mark.parametrize("source_id", ["first source", "rebuilt source"])
def test_deletes_that_a_person_allowed_are_allowed_in_a_rebuild(tmp_path: Path, source_id: str) -> None:
    live, staged = LakehousePaths(tmp_path), staged_paths(LakehousePaths(tmp_path), "r1", [SILVER.table])
    allowed = Deletes(SILVER.table, "old", day(2).start, BRONZE.table, "first source", 5, keys=9, of_keys=10)
    DeleteRecords(live).record_allowed(allowed, said_by="ann", reason="meant", run_id="r")
    intent = intent_of("rebuilt source", 12, stream=Stream(BRONZE.table), sources=BatchSources(rebuild="r"))
    Ledger(live).record_committed([Winner(intent, 12)])
    copy_ledger(live, staged, [BRONZE.table])

    deletes = StagedDeletes(staged, DeleteRecords(live)).allowed_deletes(SILVER.table, "new", source_id)

    def is_allowed(keys: int, start: datetime) -> bool:
        version = 5 if source_id == "first source" else 12
        return are_allowed(deletes, keys, version, version, start)

    assert (is_allowed(9, day(2).start), is_allowed(10, day(2).start), is_allowed(9, day(3).start)) == (
        True,
        False,
        False,
    )
    assert DeleteRecords(live).allowed_deletes(SILVER.table, "new", source_id) == []
