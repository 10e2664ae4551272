"""The ledger: the files of each attempt, the attempts that won, and the row counts of files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from include.contracts.job.report import FileRows, RowCounts
from include.control.ledger.events import Failure, FileEvent
from include.control.ledger.ledger import Ledger
from include.control.ledger.states.measures import measure
from include.control.ledger.states.table_state import TableStates
from include.control.log.batch import BatchSources, FileFact, Intent, Stream, Winner
from include.errors import ConflictError, TornLogError
from include.paths import LakehousePaths
from tests.support.ledger.delta_tables import day, file_contents, intent_of
from tests.support.ledger.ledger_reading import loaded_by_path

ORDERS = Stream("bronze.orders")
OF_TABLE = ("bronze.orders", "id")


def order_intent(batch_seq: int = 1, table_id: str = "id", **more: object) -> Intent:
    return intent_of(table_id, batch_seq, stream=ORDERS, **more)  # type: ignore[arg-type]


def file(path: str, **facts: object) -> FileFact:
    return FileFact(**{"path": path, "size": 9, "mtime_ns": 1_357_000_000_123_456_789, **facts})


def win(ledger: Ledger, intent: Intent, *files: FileFact, version: int | None = None) -> Winner:
    ledger.record_intent(intent, files)
    winner = Winner(intent, intent.batch_seq if version is None else version)
    ledger.record_committed([winner])
    return winner


def test_a_ledger_without_a_winner_has_no_batch_and_reading_it_writes_nothing(ledger: Ledger, tmp_path: Path) -> None:
    winner = Winner(order_intent(), 1)
    assert ledger.last_committed(*OF_TABLE, "main") is None
    assert ledger.closed_rows(winner) is None
    assert ledger.files_of(winner.intent) == ()
    assert loaded_by_path(ledger, *OF_TABLE) == {}
    assert ledger.failures(*OF_TABLE) == {}
    assert file_contents(tmp_path) == {}
    ledger.record_intent(winner.intent)
    assert not LakehousePaths(tmp_path).ops("files").exists(), "an attempt without files records none"
    with_files = order_intent()
    ledger.record_intent(with_files, [file("a.json"), file("b.json")])
    for reader in (ledger, Ledger(LakehousePaths(tmp_path))):
        assert [found.path for found in reader.files_of(with_files)] == ["a.json", "b.json"]
    assert ledger.last_committed(*OF_TABLE, "main") is None
    assert loaded_by_path(ledger, *OF_TABLE) == {}


def test_a_winner_comes_back_with_its_whole_intent_and_all_facts_of_its_files(ledger: Ledger, tmp_path: Path) -> None:
    ranges: dict[str, tuple[int | None, int]] = {"bronze.a": (None, 3), "bronze.b": (4, 9)}
    sources = BatchSources(ranges=ranges, files=2, files_digest="d", snapshot_at=day(1).start, reprocess=True)
    given_file = file("date=2013-01-01/é b+c%20.json.gz", checksum="ab12", columns=("tail num", "y"), size=2**40)
    winner = win(ledger, order_intent(sources=sources), given_file, version=12)
    assert ledger.last_committed(*OF_TABLE, "main") == winner
    assert ledger.files_of(winner.intent) == Ledger(LakehousePaths(tmp_path)).files_of(winner.intent) == (given_file,)
    assert loaded_by_path(ledger, *OF_TABLE) == {given_file.path: given_file}


def test_the_last_batch_is_the_batch_with_the_highest_number(ledger: Ledger) -> None:
    ninth, tenth = Winner(order_intent(9), 20), Winner(order_intent(10), 21)
    ledger.record_committed([tenth])
    ledger.record_committed([ninth])
    assert ledger.last_committed(*OF_TABLE, "main") == tenth


def test_a_batch_is_closed_even_if_its_table_cannot_be_measured(ledger: Ledger, tmp_path: Path) -> None:
    table = LakehousePaths(tmp_path).table("bronze.orders")
    write_deltalake(table, pa.table({"n": [1]}))
    winner = win(ledger, order_intent(table_id=str(DeltaTable(table).metadata().id)))
    (table / "_delta_log" / f"{0:020}.json").write_text("{")
    with pytest.raises(TornLogError):
        measure(table)
    ledger.record_closed(winner, RowCounts(read=1, applied=1))
    assert ledger.closed_rows(winner) == RowCounts(read=1, applied=1)


def test_a_batch_is_recorded_and_closed_even_if_its_state_cannot_be_written(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise ConflictError("others changed its state 100 times meanwhile", "Run this again.")

    monkeypatch.setattr(TableStates, "change", refused)
    winner, rows = win(ledger, order_intent()), RowCounts(read=1, applied=1)
    ledger.record_closed(winner, rows)
    assert ledger.last_committed(*OF_TABLE, "main") == winner
    assert ledger.closed_rows(winner) == rows


def test_applied_rows_need_all_batches_to_be_closed(ledger: Ledger) -> None:
    first, second = win(ledger, order_intent(1)), win(ledger, order_intent(2))
    rows = RowCounts(read=5, applied=3, quarantined=2, inserted=3)
    ledger.record_closed(first, rows)
    assert (ledger.closed_rows(first), ledger.closed_rows(second)) == (rows, None)
    both = {winner.token: winner.batch_seq for winner in (first, second)}
    assert ledger.applied_rows("bronze.orders", {first.token: first.batch_seq}) == 3
    assert ledger.applied_rows("bronze.orders", both) is None
    ledger.record_closed(second, RowCounts(read=4, applied=4))
    assert ledger.applied_rows("bronze.orders", both) == 7


def test_closing_a_batch_records_the_rows_of_each_file(ledger: Ledger, tmp_path: Path) -> None:
    winner = win(ledger, order_intent(), file("a.json"), file("b.json"), file("empty.json"))
    rows_of_file = {"a.json": FileRows(read=3, written=3), "b.json": FileRows(read=1, quarantined=1)}
    ledger.record_closed(winner, RowCounts(read=4, applied=3, quarantined=1), rows_of_file)
    events = DeltaTable(str(LakehousePaths(tmp_path).ops("files"))).to_pyarrow_table().to_pylist()
    loaded = {row["path"]: (row["rows_read"], row["rows_written"]) for row in events if row["event"] == "loaded"}
    assert loaded == {"a.json": (3, 3), "b.json": (1, 0)}
    assert len(events) == 5


def test_a_file_that_failed_keeps_its_last_defect_until_another_delivery_is_loaded(ledger: Ledger) -> None:
    first = file("a.json", checksum="aa", defect="truncated gzip: 'it' ends\nbefore")
    again, other = file("a.json", checksum="bb", defect="defect of bb"), file("b.json", checksum="cc")

    def failures_after(event: FileEvent, *files: FileFact) -> dict[str, Failure]:
        ledger.record_files(event, *OF_TABLE, day(1), files)
        return ledger.failures(*OF_TABLE)

    assert failures_after(FileEvent.FAILED, first) == {"a.json": Failure(first, attempts=1)}
    assert loaded_by_path(ledger, *OF_TABLE) == {}
    assert failures_after(FileEvent.FAILED, again) == {"a.json": Failure(again, attempts=1)}
    assert failures_after(FileEvent.FAILED, again) == {"a.json": Failure(again, attempts=2)}
    assert failures_after(FileEvent.REPLAYED, again) == {}
    assert list(failures_after(FileEvent.FAILED, again, other)) == ["a.json", "b.json"]
    sound = file("a.json", checksum="dd")
    win(ledger, order_intent(), sound)
    assert loaded_by_path(ledger, *OF_TABLE) == {"a.json": sound}
    assert list(ledger.failures(*OF_TABLE)) == ["b.json"]
