"""The ledger: files, attempts that won and row counts, what people decided, and the writes that lost a race."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from millrace.contracts.job.contention import LeaseWait, LostRace
from millrace.contracts.job.report import FileRows, RowCounts
from millrace.contracts.job.requests import RebuildRequest
from millrace.control.ledger.commit_history import CommitHistory, TableWrite, contended_writes
from millrace.control.ledger.deletes import DeleteRecords, Deletes, next_allowed_version
from millrace.control.ledger.events import Failure, FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.new_columns import OPEN, ColumnState, NewColumns
from millrace.control.ledger.rebuilds import RebuildEvent, Rebuilds
from millrace.control.ledger.states.measures import measure
from millrace.control.ledger.states.table_state import TableStates
from millrace.control.log.batch import BatchSources, FileFact, Intent, Stream, Winner
from millrace.errors import ConflictError, TornLogError
from millrace.paths import LakehousePaths
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


def test_the_batch_with_the_highest_number_comes_back_with_its_whole_intent_and_all_facts_of_its_files(
    ledger: Ledger, tmp_path: Path
) -> None:
    ranges: dict[str, tuple[int | None, int]] = {"bronze.a": (None, 3), "bronze.b": (4, 9)}
    sources = BatchSources(ranges=ranges, files=2, files_digest="d", snapshot_at=day(1).start, reprocess=True)
    given_file = file("date=2013-01-01/é b+c%20.json.gz", checksum="ab12", columns=("tail num", "y"), size=2**40)
    winner = win(ledger, order_intent(10, sources=sources), given_file, version=21)
    ledger.record_committed([Winner(order_intent(9), 20)])
    assert ledger.last_committed(*OF_TABLE, "main") == winner
    assert ledger.files_of(winner.intent) == Ledger(LakehousePaths(tmp_path)).files_of(winner.intent) == (given_file,)
    assert loaded_by_path(ledger, *OF_TABLE) == {given_file.path: given_file}


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


def test_closing_a_batch_records_its_rows_and_those_of_each_file_and_applied_rows_need_all_batches_to_be_closed(
    ledger: Ledger, tmp_path: Path
) -> None:
    first = win(ledger, order_intent(1), file("a.json"), file("b.json"), file("empty.json"))
    second = win(ledger, order_intent(2))
    rows = RowCounts(read=5, applied=3, quarantined=2, inserted=3)
    rows_of_file = {"a.json": FileRows(read=4, written=3), "b.json": FileRows(read=1, quarantined=1)}
    ledger.record_closed(first, rows, rows_of_file)
    events = DeltaTable(str(LakehousePaths(tmp_path).ops("files"))).to_pyarrow_table().to_pylist()
    loaded = {row["path"]: (row["rows_read"], row["rows_written"]) for row in events if row["event"] == "loaded"}
    assert (loaded, len(events)) == ({"a.json": (4, 3), "b.json": (1, 0)}, 5)
    assert (ledger.closed_rows(first), ledger.closed_rows(second)) == (rows, None)
    both = {winner.token: winner.batch_seq for winner in (first, second)}
    assert ledger.history.applied_rows("bronze.orders", {first.token: first.batch_seq}) == 3
    assert ledger.history.applied_rows("bronze.orders", both) is None
    ledger.record_closed(second, RowCounts(read=4, applied=4))
    assert ledger.history.applied_rows("bronze.orders", both) == 7


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


FLIGHTS, REVENUE = "silver.flights", "gold.revenue"
PROPOSED, ASKED, APPROVED, REFUSED = ColumnState
ANN = RebuildRequest(said_by="ann", why="other keys")
DELETES = Deletes(
    table=FLIGHTS,
    table_id="id",
    interval_start=day(4).start,
    source="bronze.orders",
    source_id="source",
    source_version=7,
    keys=3,
    of_keys=4,
    samples=("order_id=o1",),
    why="the full snapshot lacks them",
)


def test_deletes_are_pending_until_a_person_allows_exactly_these(paths: LakehousePaths) -> None:
    records = DeleteRecords(paths)
    records.record_asked(DELETES, "run")
    later = replace(DELETES, source_version=9)
    records.record_asked(later, "run")
    records.record_asked(DELETES, "the run again")
    records.record_allowed(DELETES, said_by="ann", reason="they are sold", run_id="approval")
    assert records.pending_deletes(FLIGHTS) == [later]
    assert records.allowed_deletes(FLIGHTS, "id", "source") == [DELETES]
    assert records.allowed_deletes(FLIGHTS, "another id", "source") == []
    assert records.allowed_deletes(FLIGHTS, "id", "another id") == []


def test_a_batch_ends_at_the_version_for_which_deletes_were_allowed() -> None:
    allowed = [DELETES, replace(DELETES, source_version=9)]
    assert [next_allowed_version(allowed, after, 12) for after in (None, 6, 7, 9)] == [7, 7, 9, 12]
    assert next_allowed_version(allowed, 6, 7) == 7
    assert next_allowed_version([], None, 3) == 3


def test_the_last_event_of_a_column_counts_and_an_approval_is_final_since_the_table_has_the_column(
    paths: LakehousePaths,
) -> None:
    columns = NewColumns(paths)
    assert columns.of(FLIGHTS) == []
    columns.record(PROPOSED, FLIGHTS, ["colour", "shop"], run_id="monday")
    columns.record(ASKED, FLIGHTS, ["colour"], run_id="question")
    columns.record(REFUSED, FLIGHTS, ["colour"], run_id="question", said_by="ann")
    states = [(column.name, column.state, column.run_id, column.said_by) for column in columns.of(FLIGHTS)]
    assert states == [("colour", REFUSED, "question", "ann"), ("shop", PROPOSED, "monday", "")]
    assert [column.name for column in columns.of(FLIGHTS, *OPEN)] == ["shop"]

    columns.record(APPROVED, FLIGHTS, ["colour"], run_id="", said_by="bob")
    columns.record(REFUSED, FLIGHTS, ["colour"], run_id="", said_by="ann")
    [colour] = NewColumns(paths).of(FLIGHTS, APPROVED)
    assert (colour.name, colour.said_by) == ("colour", "bob")
    assert columns.of("bronze.other") == []


@pytest.mark.parametrize("end", [RebuildEvent.DONE, RebuildEvent.CANCELLED])
def test_a_rebuild_is_active_with_its_tokens_until_it_is_done_or_cancelled(
    paths: LakehousePaths, end: RebuildEvent
) -> None:
    rebuilds = Rebuilds(paths)
    assert rebuilds.active([FLIGHTS]) == []
    first = rebuilds.start(FLIGHTS, (FLIGHTS, REVENUE), ("a", "b"), ANN, "monday")
    assert rebuilds.active([REVENUE, FLIGHTS]) == [first]
    assert rebuilds.active([REVENUE]) == [], "it was requested for the upstream table"
    for _ in range(2):
        rebuilds.record(end, first, ANN, "tuesday")
    assert rebuilds.active([FLIGHTS]) == []
    assert rebuilds.ended_ids(FLIGHTS) == [first.id]
    started = [rebuilds.start(FLIGHTS, (FLIGHTS, REVENUE), ("a",), ANN, "wednesday") for _ in range(2)]
    resumed = rebuilds.active([FLIGHTS])
    assert resumed == started
    assert len({each.token(table) for each in [first, *resumed] for table in (FLIGHTS, REVENUE)}) == 6


def test_the_history_of_a_table_has_its_writes_of_which_those_that_waited_or_lost_a_race_are_contended(
    paths: LakehousePaths,
) -> None:
    alone, waiter, loser = (
        TableWrite(FLIGHTS, "scheduled__1", day(1).start, attempts=1, waited=LeaseWait(seconds=0.99)),
        TableWrite(FLIGHTS, "scheduled__2", day(2).start, waited=LeaseWait(seconds=1.0, holders="manual__1")),
        TableWrite(
            FLIGHTS,
            "scheduled__3",
            day(3).start,
            operation="MERGE",
            stream="main",
            batch_seq=2,
            token="t2",
            version=5,
            attempts=3,
            took_s=1.5,
            lost=(
                LostRace(conflict="ConcurrentAppendException", operation="OPTIMIZE", run_id="manual__1", version=4),
                LostRace(conflict="ConcurrentWriteException", operation="", run_id="", version=None),
            ),
        ),
    )
    history = CommitHistory(paths)
    for write in (alone, waiter, loser):
        history.record(write)
    stored = CommitHistory(paths).of(FLIGHTS)
    assert stored == [alone, waiter, loser]
    assert contended_writes(stored) == [waiter, loser]
    assert history.of(REVENUE) == []
