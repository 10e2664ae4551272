"""Full snapshots that lack a file: they are read once they are complete, and delete nothing before."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.errors import Outcome
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order
from tests.support.ledger.delta_tables import day

BRONZE, STATES, PERIODS = "bronze.orders", "silver.states", "silver.periods"
SILVER = (STATES, PERIODS)
SNAPSHOT = {"snapshot": "full", "sequence_by": [], "except_column_list": ["event_at", "event_seq", "day"]} | {
    "max_deleted_percent": 20
}
MISSING = "orders/date=2013-01-02/b.json.gz"


def load_first_day(shop: Lakehouse) -> None:
    """Orders are delivered completely every day, in files; the first day is in bronze."""
    source = {**bronze_document()["source"], "files": "*.json*", "max_attempts_per_file": 2}
    states = silver_document(STATES, **SNAPSHOT)
    periods = silver_document(PERIODS, **SNAPSHOT, stored_as_scd_type=2)
    shop.specs(bronze_document(source=source), states, periods)
    given(shop, BRONZE, [order(number, number) for number in range(1, 6)], 1, "a.json")


@pytest.fixture(scope="module")
def made(shared: Lakehouse) -> Lakehouse:
    """The first day is in both silver tables, too."""
    load_first_day(shared)
    shared.run_well(1, *SILVER)
    return shared


def packed(*rows: dict[str, Any]) -> bytes:
    return gzip.compress("".join(f"{json.dumps(row)}\n" for row in rows).encode())


def half(shop: Lakehouse) -> None:
    """The second day has two files, and one is cut; bronze loads the other file."""
    shop.deliver(2, "a.json", [order(number, 20) for number in (1, 2, 3)])
    shop.deliver(2, "b.json.gz", packed(order(4, 20))[:-4])
    assert shop.run(BRONZE, 2).outcome is Outcome.BAD_INPUT


def states(shop: Lakehouse) -> dict[str, int]:
    return dict(shop.rows(STATES, "order_id", "amount"))


def open_periods(shop: Lakehouse) -> dict[str, tuple[int, int]]:
    rows = shop.rows(PERIODS, "order_id", "amount", "__START_AT", "__END_AT")
    return {key: (amount, start.day) for key, amount, start, end in rows if end is None}


FIRST = {f"o{number}": number for number in range(1, 6)}


def test_a_half_snapshot_waits_for_its_file_whichever_day_runs_and_a_later_one_does_not_wait_for_it(
    lakehouse: Lakehouse,
) -> None:
    load_first_day(lakehouse)
    half(lakehouse)
    other = lakehouse.run(PERIODS, 1)
    assert other.outcome is Outcome.COMMITTED, other.message
    assert any(MISSING in note for note in other.notes)
    own = lakehouse.run(PERIODS, 2)
    assert own.outcome is Outcome.NOT_READY
    assert MISSING in own.message
    assert open_periods(lakehouse) == {key: (amount, 1) for key, amount in FIRST.items()}
    given(lakehouse, BRONZE, [order(number, 30) for number in range(1, 6)], 3)
    assert lakehouse.run(PERIODS, 3).outcome is Outcome.COMMITTED
    assert open_periods(lakehouse) == {key: (30, 3) for key in FIRST}
    assert len(lakehouse.rows(PERIODS, "order_id")) == 10, "no period of the second day yet"
    lakehouse.deliver(2, "b.json.gz", packed(order(4, 20), order(5, 5)))
    lakehouse.run_well(2, BRONZE, PERIODS)
    assert open_periods(lakehouse) == {key: (30, 3) for key in FIRST}
    assert len(lakehouse.rows(PERIODS, "order_id")) == 14
    assert lakehouse.run(PERIODS, 2).outcome is Outcome.NO_OP


@pytest.mark.slow
def test_a_snapshot_does_not_wait_for_a_file_that_a_person_gave_up(shop: Lakehouse) -> None:
    half(shop)
    assert shop.run(BRONZE, 2).outcome is Outcome.BAD_INPUT
    assert shop.run(BRONZE, 2).exit_code == 0, "bronze goes on without it by itself"
    assert shop.run(STATES, 2).outcome is Outcome.NOT_READY, "that is no decision about its keys"
    give_up(shop)
    for table in SILVER:
        refused = shop.run(table, 2)
        assert refused.outcome is Outcome.DELETES_REFUSED, refused.message
        report = shop.run(table, 2, allow_deletes="ann")
        assert report.outcome is Outcome.COMMITTED, report.message
    assert states(shop) == dict.fromkeys(("o1", "o2", "o3"), 20)
    assert open_periods(shop) == {f"o{number}": (20, 2) for number in (1, 2, 3)}


def give_up(shop: Lakehouse) -> None:
    ledger, identity = Ledger(shop.paths), table_id(shop.paths.table(BRONZE))
    (failure,) = ledger.failed_files(BRONZE, identity).values()
    ledger.record_files(FileEvent.GIVEN_UP, BRONZE, identity, day(2), [failure.file])


@pytest.mark.slow
def test_an_empty_snapshot_is_refused_until_a_person_allows_it(shop: Lakehouse) -> None:
    shop.deliver(2, "a.json", "")
    assert shop.run(BRONZE, 2).outcome is Outcome.COMMITTED
    for table in SILVER:
        own = shop.run(table, 2)
        assert own.outcome is Outcome.DELETES_REFUSED
        assert "hold no record" in own.message
        assert shop.run(table, 1).outcome is Outcome.NO_OP
    shop.deliver(3, "a.json", [order(number, 30) for number in range(1, 5)])
    shop.run_well(3, BRONZE, *SILVER)
    assert states(shop) == {f"o{number}": 30 for number in (1, 2, 3, 4)}
    allowed = shop.run(PERIODS, 2, allow_deletes="ann")
    assert allowed.outcome is Outcome.COMMITTED, allowed.message
    ends = shop.rows(PERIODS, "order_id", "__START_AT", "__END_AT")
    assert [(key, start.day, end and end.day) for key, start, end in ends if key == "o1"] == [
        ("o1", 1, 2),
        ("o1", 3, None),
    ]


@pytest.mark.slow
def test_a_key_that_was_refused_or_cannot_be_read_is_not_absent_and_a_snapshot_without_a_change_writes_nothing(
    shop: Lakehouse,
) -> None:
    before = {table: sorted(shop.paths.table(table).rglob("*.parquet")) for table in SILVER}
    given(shop, BRONZE, [order(number, number) for number in range(1, 6)], 2)
    for table in SILVER:
        report = shop.run(table, 2)
        assert (report.outcome, report.rows.applied, report.rows.unchanged) == (Outcome.COMMITTED, 0, 5)
        assert sorted(shop.paths.table(table).rglob("*.parquet")) == before[table]
        assert shop.run(table, 2).outcome is Outcome.NO_OP

    shop.deliver(3, "a.json", [order(1, 20), "{broken", "{torn"])
    for report in shop.run_all(3, BRONZE, *SILVER):
        assert report.exit_code == 0, report.message
        assert report.table == BRONZE or any("deleted nothing: 2 records" in note for note in report.notes)
    assert states(shop) == {**FIRST, "o1": 20}
    assert open_periods(shop) == {**{key: (amount, 1) for key, amount in FIRST.items()}, "o1": (20, 3)}

    shop.specs(bronze_document(columns={**bronze_document()["columns"], "amount": {"type": "int", "nullable": False}}))
    shop.deliver(4, "a.json", [order(1, 30), order(2, 30), order(3, None), order(4, None)])
    for report in shop.run_all(4, BRONZE, *SILVER):
        assert report.exit_code == 0, report.message
        assert report.table == BRONZE or "1 key was deleted, of 5" in " ".join(report.notes)
    assert states(shop) == {"o1": 30, "o2": 30, "o3": 3, "o4": 4}
    assert set(open_periods(shop)) == {"o1", "o2", "o3", "o4"}
    assert shop.reports[-1].findings.absent[0].samples == ("order_id=o5",)
