"""`lakehouse replay` and `give-up`: the intervals of failed files run again, or runs continue without them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
import typer
from deltalake import DeltaTable, write_deltalake

from millrace.cli.replay import give_up_files, replays
from millrace.cli.runs import driver
from millrace.contracts.file_status import FileStatus
from millrace.control.landing.matching import given_up_files, given_up_notes
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.batch import FileFact, Stream, Winner
from millrace.errors import ExitCode, UnknownNameError
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.documents.specs import bronze_document, bronze_spec, silver_document, write_specs
from tests.support.ledger.delta_tables import day, intent_of

BRONZE = "bronze.orders"
LOADED, *FAILED = ("orders/a.json", "orders/b.json", "orders/c.json", "orders/d.json")


def table_id(settings: Settings) -> str:
    return str(DeltaTable(str(LakehousePaths(settings.root).table(BRONZE))).metadata().id)


def failed_file(path: str) -> FileFact:
    return FileFact(path=path, size=7, mtime_ns=1, checksum="aa", defect="truncated gzip")


@pytest.fixture(autouse=True)
def ledger(settings: Settings) -> Ledger:
    """One file that was loaded, and three that failed: two of the third day, one of the second."""
    write_deltalake(LakehousePaths(settings.root).table(BRONZE), pa.table({"amount": [1]}))
    ledger = Ledger(LakehousePaths(settings.root))
    intent = intent_of(table_id(settings), 1, stream=Stream(BRONZE))
    ledger.record_intent(intent, [FileFact(path=LOADED, size=1, mtime_ns=1)])
    ledger.record_committed([Winner(intent, 0)])
    for path, number in zip(FAILED, (3, 2, 3), strict=True):
        ledger.record_files(FileEvent.FAILED, BRONZE, table_id(settings), day(number), [failed_file(path)])
    return ledger


def test_each_interval_of_a_failed_file_runs_once_for_its_readers_and_of_a_loaded_one_never(settings: Settings) -> None:
    other = bronze_document("bronze.clicks"), silver_document("silver.clicks", source="bronze.clicks")
    write_specs(settings.tables, *other)
    planned = replays([LOADED, *FAILED], settings)
    assert [file.path for file in planned.files] == [LOADED, *FAILED]
    assert [(selection.domain, selection.intervals) for selection in planned.selections] == [
        ("shop", (day(2),)),
        ("shop", (day(3),)),
    ]
    tables = [BRONZE, "silver.orders", "gold.revenue_daily"]
    assert [[spec.table for spec in selection.specs] for selection in planned.selections] == [tables, tables]
    assert all(selection.names_tables for selection in planned.selections)


def test_a_file_may_be_named_by_its_full_path(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    file = Path(settings.landing) / FAILED[0]
    file.parent.mkdir(parents=True)
    file.touch()
    monkeypatch.chdir(file.parent)
    for typed in (file.name, str(file), FAILED[0]):
        assert [state.path for state in replays([typed], settings).files] == [FAILED[0]]


def test_a_loaded_file_is_not_run_again_and_an_unknown_one_is_refused(lakehouse: Lakehouse) -> None:
    answer = lakehouse("replay", LOADED)
    assert answer.exit_code == 0, answer.stderr
    assert "there is nothing to run" in answer.stdout
    answer = lakehouse("replay", "orders/z.json")
    assert answer.exit_code == ExitCode.WRONG_USAGE
    cause, way_out = answer.stderr.splitlines()
    assert cause.endswith("the ledger has no landing file 'orders/z.json'")
    assert way_out.startswith("`lakehouse files TABLE` lists them")
    assert "known are" not in answer.stderr, "a feed has thousands of files"


def test_a_damaged_table_does_not_prevent_replays_of_others(lakehouse: Lakehouse, settings: Settings) -> None:
    write_specs(settings.tables, bronze_document("bronze.bills"))
    torn = LakehousePaths(settings.root).table("bronze.bills")
    write_deltalake(torn, pa.table({"n": [1]}))
    (torn / "_delta_log" / f"{0:020}.json").write_text("{")
    planned = replays(FAILED[:1], settings)
    assert [file.path for file in planned.files] == FAILED[:1]
    assert [line.partition(":")[0] for line in planned.damage] == ["bronze.bills"]
    answer = lakehouse("replay", "orders/z.json")
    assert answer.exit_code == ExitCode.FAILED
    assert "bronze.bills: The log of" in answer.stderr


def test_a_failed_interval_does_not_stop_the_others(lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "driver_command", lambda *_, **__: ["sh", "-c", "echo no such folder; exit 12"])
    ended = lakehouse("replay", FAILED[0], FAILED[1])
    assert ended.exit_code == ExitCode.NOT_READY, ended.output
    assert ended.stderr.count("The Spark driver ended with exit code 12:\nno such folder\n") == 2


def test_a_file_is_given_up_with_a_reason_until_it_is_replayed(settings: Settings, ledger: Ledger) -> None:
    (file,) = give_up_files(FAILED[1:2], "the shop was closed", settings)
    assert (file.status, file.interval) == (FileStatus.GIVEN_UP, day(2))
    failures = ledger.failures(BRONZE, table_id(settings))
    (note,) = given_up_notes([*given_up_files(failures, bronze_spec().landing_source).values()])
    assert note.startswith(f"{FAILED[1]} was given up by ")
    assert "the shop was closed (truncated gzip)" in note
    replayed = replace(failed_file(FAILED[1]), defect="")
    ledger.record_files(FileEvent.REPLAYED, BRONZE, table_id(settings), day(2), [replayed])
    assert FAILED[1] not in ledger.failures(BRONZE, table_id(settings))
    assert not ledger.failed_files(BRONZE, table_id(settings))[FAILED[1]].given_up


def test_other_content_under_the_name_of_a_given_up_file_is_tried_again(settings: Settings, ledger: Ledger) -> None:
    give_up_files(FAILED[1:2], "closed", settings)
    other = replace(failed_file(FAILED[1]), checksum="bb", size=8)
    ledger.record_files(FileEvent.FAILED, BRONZE, table_id(settings), day(2), [other])
    assert not ledger.failed_files(BRONZE, table_id(settings))[FAILED[1]].given_up


def test_giving_up_needs_a_reason_and_a_file_that_failed(settings: Settings) -> None:
    with pytest.raises(typer.BadParameter, match="why should runs go on"):
        give_up_files(FAILED[:1], " ", settings)
    with pytest.raises(UnknownNameError, match="has no landing file"):
        give_up_files(["orders/z.json"], "closed", settings)
