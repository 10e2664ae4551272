"""`lakehouse replay`: the intervals of failed files run again, those of loaded files do not."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from include.cli.replay import replays
from include.control.ledger.events import FileEvent
from include.control.ledger.ledger import Ledger
from include.control.log.batch import FileFact, Stream, Winner
from include.errors import ExitCode
from include.paths import LakehousePaths
from include.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.documents.specs import bronze_document, silver_document, write_specs
from tests.support.ledger.delta_tables import day, intent_of

LOADED, *FAILED = ("orders/a.json", "orders/b.json", "orders/c.json", "orders/d.json")


@pytest.fixture
def settings(place: Mapping[str, str]) -> Settings:
    """One file that was loaded, and three that failed: two of the third day, one of the second."""
    settings = Settings(**{name: Path(place[f"LAKEHOUSE_{name.upper()}"]) for name in ("root", "landing", "tables")})
    bronze = LakehousePaths(settings.root).table("bronze.orders")
    write_deltalake(bronze, pa.table({"amount": [1]}))
    table_id = str(DeltaTable(str(bronze)).metadata().id)
    ledger, intent = Ledger(LakehousePaths(settings.root)), intent_of(table_id, 1, stream=Stream("bronze.orders"))
    ledger.record_intent(intent, [FileFact(path=LOADED, size=1, mtime_ns=1)])
    ledger.record_committed([Winner(intent, 0)])
    for path, number in zip(FAILED, (3, 2, 3), strict=True):
        broken = FileFact(path=path, size=7, mtime_ns=1, defect="truncated gzip")
        ledger.record_files(FileEvent.FAILED, "bronze.orders", table_id, day(number), [broken])
    return settings


@pytest.fixture
def remote() -> Iterator[str]:
    """An address that answers, though no Spark is behind it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"sc://127.0.0.1:{server.getsockname()[1]}"


def test_each_interval_of_a_failed_file_runs_once_and_of_a_loaded_file_never(settings: Settings) -> None:
    planned = replays([LOADED, *FAILED], settings)
    assert [file.path for file in planned.files] == [LOADED, *FAILED]
    assert [(selection.domain, selection.intervals) for selection in planned.selections] == [
        ("shop", (day(2),)),
        ("shop", (day(3),)),
    ]
    tables = ["bronze.orders", "silver.orders", "gold.revenue_daily"]
    assert [[spec.table for spec in selection.specs] for selection in planned.selections] == [tables, tables]


def test_tables_that_do_not_read_the_file_are_not_run(settings: Settings) -> None:
    write_specs(
        settings.tables, bronze_document("bronze.clicks"), silver_document("silver.clicks", source="bronze.clicks")
    )
    (selection,) = replays(FAILED[:1], settings).selections
    assert [spec.table for spec in selection.specs] == ["bronze.orders", "silver.orders", "gold.revenue_daily"]
    assert selection.names_tables


def test_a_file_may_be_named_by_its_full_path(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    file = Path(settings.landing) / FAILED[0]
    file.parent.mkdir(parents=True)
    file.touch()
    monkeypatch.chdir(file.parent)
    for typed in (file.name, str(file), FAILED[0]):
        assert [state.path for state in replays([typed], settings).files] == [FAILED[0]]


def test_a_loaded_file_is_not_run_again(lakehouse: Lakehouse, settings: Settings) -> None:
    assert settings.root.exists()
    answer = lakehouse("replay", LOADED)
    assert answer.exit_code == 0, answer.stderr
    assert "there is nothing to run" in answer.stdout


def test_an_unknown_file_is_refused(lakehouse: Lakehouse, settings: Settings) -> None:
    assert settings.root.exists()
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


def test_a_failed_interval_does_not_stop_the_others(place: Mapping[str, str], settings: Settings, remote: str) -> None:
    assert settings.root.exists()
    command = [Path(sys.executable).parent / "lakehouse", "replay", FAILED[0], FAILED[1]]
    environment = {**os.environ, **place, "SPARK_REMOTE": remote}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == ExitCode.NOT_READY, ended.stdout + ended.stderr
    assert "orders/date=2013-01-02" in ended.stderr
    assert "orders/date=2013-01-03" in ended.stderr
