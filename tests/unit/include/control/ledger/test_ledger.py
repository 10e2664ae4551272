"""The ledger: the files of each attempt, the attempts that won, and the row counts of files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

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
from tests.support.ledger.ledger_writer import files_of, record_batches
from tests.support.processes import run_together

ORDERS = Stream("bronze.orders")
WRITERS, EACH = 3, 4
BAD = FileRows(read=1, quarantined=1)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(LakehousePaths(tmp_path))


def order_intent(batch_seq: int = 1, table_id: str = "id", **more: object) -> Intent:
    return intent_of(table_id, batch_seq, stream=ORDERS, **more)  # type: ignore[arg-type]


def file(path: str, **facts: object) -> FileFact:
    return FileFact(**{"path": path, "size": 9, "mtime_ns": 1_357_000_000_123_456_789, **facts})


def win(ledger: Ledger, intent: Intent, *files: FileFact, version: int | None = None) -> Winner:
    ledger.record_intent(intent, files)
    winner = Winner(intent, intent.batch_seq if version is None else version)
    ledger.record_committed([winner])
    return winner


def test_an_empty_ledger_has_no_batches_and_reading_it_writes_nothing(ledger: Ledger, tmp_path: Path) -> None:
    winner = Winner(order_intent(), 1)
    assert ledger.last_committed("bronze.orders", "id", "main") is None
    assert ledger.closed_rows(winner) is None
    assert ledger.files_of(winner.intent) == ()
    assert loaded_by_path(ledger, "bronze.orders", "id") == {}
    assert ledger.failures("bronze.orders", "id") == {}
    assert file_contents(tmp_path) == {}


def test_an_intent_is_no_batch(ledger: Ledger) -> None:
    intent = order_intent()
    ledger.record_intent(intent, [file("a.json"), file("b.json")])
    assert [found.path for found in ledger.files_of(intent)] == ["a.json", "b.json"]
    assert ledger.last_committed("bronze.orders", "id", "main") is None
    assert loaded_by_path(ledger, "bronze.orders", "id") == {}


def test_a_file_comes_back_with_all_its_facts(ledger: Ledger) -> None:
    given_file = file("date=2013-01-01/é b+c%20.json.gz", checksum="ab12", columns=("tail num", "y"), size=2**40)
    winner = win(ledger, order_intent(), given_file)
    assert ledger.files_of(winner.intent) == (given_file,)
    assert loaded_by_path(ledger, "bronze.orders", "id") == {given_file.path: given_file}


def test_a_winner_comes_back_with_its_whole_intent(ledger: Ledger) -> None:
    ranges: dict[str, tuple[int | None, int]] = {"bronze.a": (None, 3), "bronze.b": (4, 9)}
    sources = BatchSources(ranges=ranges, files=2, files_digest="d", snapshot_at=day(1).start, reprocess=True)
    winner = win(ledger, order_intent(sources=sources), version=12)
    assert ledger.last_committed("bronze.orders", "id", "main") == winner


def test_only_the_files_of_the_winner_are_loaded_if_attempts_share_a_number(ledger: Ledger) -> None:
    first, second, third = order_intent(1), order_intent(1), order_intent(1)
    ledger.record_intent(first, [file("a.json"), file("b.json")])
    ledger.record_intent(second, [file("b.json"), file("c.json")])
    ledger.record_intent(third, [file("d.json")])
    ledger.record_committed([Winner(second, 1)])
    assert sorted(loaded_by_path(ledger, "bronze.orders", "id")) == ["b.json", "c.json"]
    last = ledger.last_committed("bronze.orders", "id", "main")
    assert last is not None
    assert last.token == second.token


def test_a_batch_may_be_recorded_twice(ledger: Ledger) -> None:
    winner = win(ledger, order_intent(), file("a.json"))
    ledger.record_committed([winner])
    assert ledger.last_committed("bronze.orders", "id", "main") == winner
    assert list(loaded_by_path(ledger, "bronze.orders", "id")) == ["a.json"]


def test_the_last_batch_is_the_batch_with_the_highest_number(ledger: Ledger) -> None:
    ninth, tenth = Winner(order_intent(9), 20), Winner(order_intent(10), 21)
    ledger.record_committed([tenth])
    ledger.record_committed([ninth])
    assert ledger.last_committed("bronze.orders", "id", "main") == tenth


def test_a_batch_is_closed_once_its_secondary_writes_are_done(ledger: Ledger) -> None:
    winner, other = win(ledger, order_intent(1)), win(ledger, order_intent(2))
    rows = RowCounts(read=5, applied=3, quarantined=2, inserted=3)
    ledger.record_closed(winner, rows)
    assert ledger.closed_rows(winner) == rows
    assert ledger.closed_rows(other) is None


def test_a_batch_is_closed_even_if_its_table_cannot_be_measured(ledger: Ledger, tmp_path: Path) -> None:
    table = LakehousePaths(tmp_path).table("bronze.orders")
    write_deltalake(table, pa.table({"n": [1]}))
    winner, rows = (
        win(ledger, order_intent(table_id=str(DeltaTable(table).metadata().id))),
        RowCounts(read=1, applied=1),
    )
    (table / "_delta_log" / f"{0:020}.json").write_text("{")
    with pytest.raises(TornLogError):
        measure(table)
    ledger.record_closed(winner, rows)
    assert ledger.closed_rows(winner) == rows


def test_a_batch_is_recorded_and_closed_even_if_its_state_cannot_be_written(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise ConflictError("others changed its state 100 times meanwhile", "Run this again.")

    monkeypatch.setattr(TableStates, "change", refused)
    winner, rows = win(ledger, order_intent()), RowCounts(read=1, applied=1)
    ledger.record_closed(winner, rows)
    assert ledger.last_committed("bronze.orders", "id", "main") == winner
    assert ledger.closed_rows(winner) == rows


def test_applied_rows_need_all_batches_to_be_closed(ledger: Ledger) -> None:
    first, second = win(ledger, order_intent(1)), win(ledger, order_intent(2))
    ledger.record_closed(first, RowCounts(read=5, applied=3, quarantined=2))
    both = {winner.token: winner.batch_seq for winner in (first, second)}
    assert ledger.applied_rows("bronze.orders", {first.token: first.batch_seq}) == 3
    assert ledger.applied_rows("bronze.orders", both) is None
    ledger.record_closed(second, RowCounts(read=4, applied=4))
    assert ledger.applied_rows("bronze.orders", both) == 7


def test_closing_a_batch_records_the_rows_of_each_file(ledger: Ledger, tmp_path: Path) -> None:
    winner = win(ledger, order_intent(), file("a.json"), file("b.json"), file("empty.json"))
    ledger.record_closed(
        winner, RowCounts(read=4, applied=3, quarantined=1), {"a.json": FileRows(read=3, written=3), "b.json": BAD}
    )
    events = DeltaTable(str(LakehousePaths(tmp_path).ops("files"))).to_pyarrow_table().to_pylist()
    loaded = {row["path"]: (row["rows_read"], row["rows_written"]) for row in events if row["event"] == "loaded"}
    assert loaded == {"a.json": (3, 3), "b.json": (1, 0)}
    assert len(events) == 5


def test_a_failed_file_keeps_its_defect_and_is_not_loaded(ledger: Ledger) -> None:
    broken = file("a.json.gz", checksum="aa", defect="truncated gzip: 'it' ends\nbefore")
    ledger.record_files(FileEvent.FAILED, "bronze.orders", "id", day(1), [broken])
    assert ledger.failures("bronze.orders", "id") == {"a.json.gz": Failure(broken, attempts=1)}
    assert loaded_by_path(ledger, "bronze.orders", "id") == {}


def test_a_file_that_failed_again_has_its_last_defect(ledger: Ledger) -> None:
    first, again = (file("a.json.gz", checksum=text, defect=f"defect of {text}") for text in ("aa", "bb"))
    ledger.record_files(FileEvent.FAILED, "bronze.orders", "id", day(1), [first])
    ledger.record_files(FileEvent.FAILED, "bronze.orders", "id", day(1), [again])
    assert ledger.failures("bronze.orders", "id") == {"a.json.gz": Failure(again, attempts=1)}
    ledger.record_files(FileEvent.FAILED, "bronze.orders", "id", day(1), [again])
    assert ledger.failures("bronze.orders", "id") == {"a.json.gz": Failure(again, attempts=2)}
    ledger.record_files(FileEvent.REPLAYED, "bronze.orders", "id", day(1), [again])
    assert ledger.failures("bronze.orders", "id") == {}


def test_a_failed_file_is_not_failed_after_another_delivery_was_loaded(ledger: Ledger) -> None:
    ledger.record_files(
        FileEvent.FAILED,
        "bronze.orders",
        "id",
        day(1),
        [file("a.json", checksum="aa", defect="broken"), file("b.json")],
    )
    sound = file("a.json", checksum="bb")
    win(ledger, order_intent(), sound)
    assert loaded_by_path(ledger, "bronze.orders", "id") == {"a.json": sound}
    assert list(ledger.failures("bronze.orders", "id")) == ["b.json"]


def test_tables_ids_and_streams_are_kept_apart(ledger: Ledger) -> None:
    win(ledger, order_intent(1), file("a.json"))
    ledger.record_files(FileEvent.FAILED, "bronze.orders", "id", day(1), [file("x.json", defect="d")])
    for table, table_id in (("bronze.orders", "re-created"), ("silver.orders", "id")):
        assert ledger.last_committed(table, table_id, "main") is None
        assert loaded_by_path(ledger, table, table_id) == {}
        assert ledger.failures(table, table_id) == {}
    assert ledger.last_committed("bronze.orders", "id", "other") is None


def test_an_attempt_without_files_records_none(ledger: Ledger, tmp_path: Path) -> None:
    ledger.record_intent(order_intent())
    assert not LakehousePaths(tmp_path).ops("files").exists()
    batches = DeltaTable(str(LakehousePaths(tmp_path).ops("batches"))).to_pyarrow_table()
    assert batches.column("event").to_pylist() == ["intent"]


def test_processes_that_record_at_the_same_time_lose_nothing(ledger: Ledger, tmp_path: Path) -> None:
    run_together(WRITERS, record_batches, tmp_path, EACH)
    expected = {
        each.path: each for writer in range(WRITERS) for number in range(EACH) for each in files_of(writer, number + 1)
    }
    assert len(expected) == 2 * WRITERS * EACH
    assert loaded_by_path(ledger, "bronze.orders", "id") == expected
    for writer in range(WRITERS):
        last = ledger.last_committed("bronze.orders", "id", f"writer-{writer}")
        assert last is not None
        assert last.batch_seq == EACH
        assert ledger.closed_rows(last) == RowCounts(read=1, applied=1)
    recorded = DeltaTable(str(LakehousePaths(tmp_path).ops("batches"))).to_pyarrow_table()
    counts = {
        count["values"]: count["counts"] for count in pa.chunked_array(recorded["event"]).value_counts().to_pylist()
    }
    assert counts == dict.fromkeys(("intent", "committed", "closed"), WRITERS * EACH)


PATHS = st.sampled_from(["a", "b", "c", "d"])
ATTEMPTS = st.lists(
    st.fixed_dictionaries(
        {
            "stream": st.sampled_from(["main", "other"]),
            "table_id": st.sampled_from(["old", "new"]),
            "files": st.lists(PATHS, max_size=3, unique=True),
            "last_event": st.sampled_from(["intent", "committed", "closed", "failed"]),
        }
    ),
    min_size=1,
    max_size=7,
)


@settings(max_examples=15, deadline=None)
@given(attempts=ATTEMPTS)
def test_the_ledger_returns_the_same_as_a_dictionary_of_attempts(
    attempts: list[dict[str, object]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    ledger = Ledger(LakehousePaths(tmp_path_factory.mktemp("lake")))
    loaded: dict[str, dict[str, FileFact]] = {"old": {}, "new": {}}
    failed: dict[str, dict[str, FileFact]] = {"old": {}, "new": {}}
    last: dict[tuple[object, object], Winner] = {}
    closed: dict[str, RowCounts] = {}
    winners: list[Winner] = []
    for version, attempt in enumerate(attempts, start=1):
        table_id, stream = str(attempt["table_id"]), Stream("bronze.orders", str(attempt["stream"]))
        before = last.get((table_id, stream.name))
        intent = intent_of(table_id, before.batch_seq + 1 if before else 1, stream=stream)
        files = [file(path, checksum=str(version)) for path in attempt["files"]]  # type: ignore[attr-defined]
        if attempt["last_event"] == "failed":
            broken = [replace(each, defect="broken") for each in files]
            ledger.record_files(FileEvent.FAILED, "bronze.orders", table_id, day(1), broken)
            failed[table_id].update({each.path: each for each in broken})
            continue
        ledger.record_intent(intent, files)
        assert {each.path: each for each in ledger.files_of(intent)} == {each.path: each for each in files}
        if attempt["last_event"] == "intent":
            continue
        winner = Winner(intent, version)
        ledger.record_committed([winner])
        winners.append(winner)
        last[table_id, stream.name] = winner
        loaded[table_id].update({each.path: each for each in files})
        failed[table_id] = {path: each for path, each in failed[table_id].items() if path not in attempt["files"]}  # type: ignore[operator]
        if attempt["last_event"] == "closed":
            closed[winner.token] = RowCounts(read=version, applied=version)
            ledger.record_closed(winner, closed[winner.token], {each.path: FileRows(read=version) for each in files})
    for table_id in ("old", "new"):
        assert loaded_by_path(ledger, "bronze.orders", table_id) == loaded[table_id]
        failures = ledger.failures("bronze.orders", table_id)
        assert {path: failure.file for path, failure in failures.items()} == failed[table_id]
        for stream_name in ("main", "other"):
            assert ledger.last_committed("bronze.orders", table_id, stream_name) == last.get((table_id, stream_name))
    assert {winner.token: ledger.closed_rows(winner) for winner in winners} == {
        winner.token: closed.get(winner.token) for winner in winners
    }
