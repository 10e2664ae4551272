"""Events are in the order of their commits: neither a clock that is wrong, nor a ledger from before, changes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
import time_machine
from deltalake import write_deltalake

from demo.reading import delta_reader
from millrace.control.events.conditions import Span
from millrace.control.gates.gates import Gates
from millrace.control.ledger import ops_table
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.new_columns import ColumnState, NewColumns
from millrace.control.ledger.ops_table import OpsTable
from millrace.control.log.batch import FileFact, Stream, Winner
from millrace.control.quarantine.events import Decision, QuarantineEvents, RowEvent
from millrace.paths import LakehousePaths
from tests.support.ledger.delta_tables import append, day, intent_of
from tests.support.ledger.event_race import EVENTS, event
from tests.support.ledger.gate_results import TABLE, verdict

ORDERS = ("bronze.orders", "id")
LOADED = FileFact("loaded.json", size=9, mtime_ns=1, checksum="A")
BROKEN = FileFact("broken.json", size=9, mtime_ns=1, checksum="A", defect="no JSON")
GIVEN_UP = replace(BROKEN, path="given up.json", defect="by ann: lost")


@contextmanager
def a_day_ahead() -> Iterator[None]:
    with time_machine.travel(datetime.now(UTC) + timedelta(days=1)):
        yield


def load(ledger: Ledger, number: int, file: FileFact) -> None:
    intent = intent_of("id", number, stream=Stream("bronze.orders"))
    ledger.record_intent(intent, [file])
    ledger.record_committed([Winner(intent, number)])


def test_what_was_recorded_last_counts_although_the_run_before_had_a_clock_a_day_ahead(
    ledger: Ledger, gates: Gates, paths: LakehousePaths, table: Path, table_id: str
) -> None:
    columns, rows, by_ann = NewColumns(paths), QuarantineEvents(paths), Decision("ann", "why", "run")
    version = append(table)
    with a_day_ahead():
        load(ledger, 1, LOADED)
        for file in (BROKEN, BROKEN, GIVEN_UP):
            ledger.record_files(FileEvent.FAILED, *ORDERS, day(1), [file])
        ledger.record_files(FileEvent.GIVEN_UP, *ORDERS, day(1), [GIVEN_UP])
        gates.record(verdict(table_id, version, passed=False))
        columns.record(ColumnState.ASKED, "bronze.orders", ["gate"], run_id="run")
        rows.record(RowEvent.DISCARDED, *ORDERS, ["row"], by_ann)
    load(ledger, 2, replace(LOADED, checksum="B"))
    ledger.record_files(FileEvent.REPLAYED, *ORDERS, day(1), [BROKEN, GIVEN_UP])
    gates.record(verdict(table_id, version))
    columns.record(ColumnState.REFUSED, "bronze.orders", ["gate"], run_id="run", said_by="ann")
    rows.record(RowEvent.REOPENED, *ORDERS, ["row"], by_ann)

    files = ledger.loaded_files(*ORDERS)
    assert [fact.checksum for fact in files.facts([LOADED.path])] == ["A", "B"]
    assert not files.holds(LOADED, only_last=True), "so that A, delivered again, is loaded again"
    failed = ledger.failed_files(*ORDERS)
    assert {path: (each.attempts, each.given_up) for path, each in failed.items()} == {
        BROKEN.path: (0, False),
        GIVEN_UP.path: (0, False),
    }
    for reader in (gates, Gates(paths)):
        assert [recorded.result.passed for recorded in reader.results(TABLE)] == [False, True]
        assert reader.result(TABLE, version, "suite") == verdict(table_id, version)
    assert [column.state for column in columns.of("bronze.orders")] == [ColumnState.REFUSED]
    assert [row["event"] for row in rows.events_of(*ORDERS)] == [RowEvent.DISCARDED, RowEvent.REOPENED]


def test_events_of_an_earlier_millrace_come_first_and_among_each_other_by_their_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, silver = tmp_path / "ops" / "events", "silver.flights"

    def words(**where: object) -> list[str]:
        return [row["word"] for row in OpsTable(path, EVENTS).find(silver, ("word",), **where)]  # type: ignore[arg-type]

    with a_day_ahead():
        old = [event(silver, word) for word in "abcd"]
    for part in (old[1::2], old[::2]):
        write_deltalake(path, pa.Table.from_pylist(part, EVENTS), mode="append", partition_by=["table"])
    assert words() == [*"abcd"]
    events = OpsTable(path, EVENTS)
    for word in "efghijklm":
        events.append([event(silver, word)])
    expected = [*"abcdefghijklm"]
    monkeypatch.setattr(ops_table, "FILES_WORTH_COMPACTING", 2)
    for _ in range(2):
        assert words() == expected
        newest_first = OpsTable(path, EVENTS).descending(silver, "recorded_in", ("word",))
        assert [row["word"] for row in newest_first] == expected[::-1]
        assert words(recorded_at=Span(least=old[0]["recorded_at"])) == [*"abcd"]
        newest = f"FROM delta_scan('{path}') SELECT word ORDER BY recorded_in DESC NULLS LAST, recorded_at DESC"
        assert delta_reader().sql(newest).fetchone() == ("m",), "the table has the column by now"
        events.compact(silver)
    events.append([event(silver, "n")])
    assert words() == [*expected, "n"]
