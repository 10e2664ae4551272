"""Silver tables with history on real Delta: events in any order and repetition give the same periods."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from millrace.contracts.job.report import RowCounts
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

pytestmark = pytest.mark.slow

BRONZE, SILVER = "bronze.orders", "silver.orders"


@pytest.fixture
def history(lakehouse: Lakehouse) -> Lakehouse:
    """A lakehouse whose orders keep their history."""
    state_history(lakehouse)
    return lakehouse


def state_history(lakehouse: Lakehouse, **changes: Any) -> None:
    columns = {**bronze_document()["columns"], "op": {"type": "string"}}
    stated = {
        "stored_as_scd_type": 2,
        "sequence_by": ["event_at"],
        "apply_as_deletes": "op = 'delete'",
        "except_column_list": ["event_at", "event_seq", "day"],
        **changes,
    }
    lakehouse.specs(bronze_document(columns=columns), silver_document(**stated))
    (lakehouse.folder / "tables/gold/shop/revenue_daily.yaml").unlink(missing_ok=True)


def hour(at: datetime | None) -> int | None:
    return at.hour if at else None


def periods(lakehouse: Lakehouse) -> list[tuple[Any, ...]]:
    rows = lakehouse.rows(SILVER, "order_id", "amount", "__START_AT", "__END_AT")
    return sorted(
        ((key, value, hour(start), hour(end)) for key, value, start, end in rows), key=lambda row: (row[0], row[2])
    )


def run(lakehouse: Lakehouse, number: int, *events: dict[str, Any]) -> RowCounts:
    """Merge events of a day."""
    given(lakehouse, BRONZE, events, number)
    return lakehouse.run_well(number, SILVER).rows


def test_a_late_event_splits_its_period_and_reprocess_by_a_changed_expression_changes_every_period(
    history: Lakehouse,
) -> None:
    run(history, 1, order(1, 5, 1), order(2, 1, 1))
    rows = run(history, 2, order(1, 6, 8), order(1, 7, 9))
    assert (rows.read, rows.inserted, rows.updated) == (2, 2, 1)
    late = run(history, 3, order(1, 9, 4))
    assert (late.read, late.applied, late.unchanged, late.inserted, late.updated) == (4, 2, 2, 1, 1), "read again"
    assert periods(history) == [
        ("o1", 5, 1, 4),
        ("o1", 9, 4, 8),
        ("o1", 6, 8, 9),
        ("o1", 7, 9, None),
        ("o2", 1, 1, None),
    ]

    columns = silver_document()["columns"]
    state_history(history, columns={**columns, "amount": {"type": "int", "from": "amount * 10"}})
    assert history.run(SILVER, 2, reprocess=True).exit_code == 0
    assert [row[1] for row in periods(history)] == [50, 90, 60, 70, 1], "of the keys of the day"


def test_a_sequence_of_two_columns_is_a_start_of_two_columns(history: Lakehouse) -> None:
    two = {"sequence_by": ["event_at", "event_seq"], "except_column_list": ["event_at"]}
    state_history(history, **two, track_history_except_column_list=["event_seq"])
    run(history, 1, order(1, 5, 1, seq=1), order(1, 6, 1, seq=3))
    run(history, 2, order(1, 7, 1, seq=2), order(1, 6, 1, seq=4))
    rows = history.rows(SILVER, "amount", "event_seq", "__START_AT", "__END_AT")
    found = [(amount, seq, start["event_seq"], (end or {}).get("event_seq")) for amount, seq, start, end in rows]
    assert sorted(found) == [(5, 1, 1, 2), (6, 4, 3, None), (7, 2, 2, 3)]


def test_a_null_leaves_a_column_as_it_was_whatever_the_order(history: Lakehouse) -> None:
    state_history(history, stored_as_scd_type=1, ignore_null_updates=True, except_column_list=[])
    run(history, 3, {**order(1, 6, 3), "event_seq": None}, order(2, None, 4))
    run(history, 1, order(1, 5, 1, seq=1), order(2, 7, 1))
    run(history, 2, order(1, None, 2, seq=2), order(2, None, 3, op="delete"))
    assert history.rows(SILVER, "order_id", "amount", "event_seq") == [("o1", 6, 2), ("o2", None, 1)]
