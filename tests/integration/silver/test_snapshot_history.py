"""Full snapshots as history on real Delta: a row for every state, whatever the order in which snapshots arrive.

The third one holds a row without a key, which may be that of the key it lacks: it ends no period. The fourth is empty,
and a person lets it end them all.
"""

from __future__ import annotations

from typing import Any

import pytest

from millrace.contracts.job.report import JobReport
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, order

BRONZE, SILVER, NEWEST = "bronze.orders", "silver.orders", "silver.newest"
SNAPSHOTS = {
    1: [order(1, 5), order(2, 7), order(3, 1)],
    2: [order(1, 5), order(3, 2)],
    3: [order(1, 6), order(2, 7), order(None, 1)],
    4: [],
    5: [order(2, 7), order(3, -1)],
}
PERIODS = [
    ("o1", 5, 1, 3), ("o1", 6, 3, 4),
    ("o2", 7, 1, 2), ("o2", 7, 3, 4), ("o2", 7, 5, None),
    ("o3", 1, 1, 2), ("o3", 2, 2, 4),
]  # fmt: skip


@pytest.fixture
def snapshots(lakehouse: Lakehouse) -> Lakehouse:
    """A lakehouse whose orders are delivered whole every day."""
    left_out = ["event_at", "event_seq", "day"]
    stated = {"snapshot": "full", "stored_as_scd_type": 2, "sequence_by": [], "except_column_list": left_out}
    source = {**bronze_document()["source"], "on_changed_file": "replace"}
    newest = silver_document(NEWEST, expectations=[AT_LEAST_0], snapshot="full", sequence_by=[])
    lakehouse.specs(bronze_document(source=source), silver_document(expectations=[AT_LEAST_0], **stated), newest)
    (lakehouse.folder / "tables/gold/shop/revenue_daily.yaml").unlink()
    return lakehouse


def load(lakehouse: Lakehouse, *numbers: int) -> None:
    """Load snapshots into bronze."""
    for number in numbers:
        if SNAPSHOTS[number]:
            given(lakehouse, BRONZE, SNAPSHOTS[number], number, "a.json")
        else:
            lakehouse.deliver(number, "a.json", "")
            lakehouse.run_well(number, BRONZE)


def merge(lakehouse: Lakehouse, number: int, table: str = SILVER) -> JobReport:
    return lakehouse.run_well(number, table, allow_deletes="ann")


def periods(lakehouse: Lakehouse) -> list[tuple[Any, ...]]:
    rows = lakehouse.rows(SILVER, "order_id", "amount", "__START_AT", "__END_AT")
    found = [(key, amount, start.day, end.day if end else None) for key, amount, start, end in rows]
    return sorted(found, key=lambda row: (row[0], row[2]))


@pytest.mark.faults
def test_any_order_of_snapshots_ends_in_the_same_periods(snapshots: Lakehouse) -> None:
    for number in (3, 1, 5, 2, 4):
        load(snapshots, number)
        merge(snapshots, number)
    assert periods(snapshots) == PERIODS
    assert len(snapshots.quarantine(SILVER)) == 2


@pytest.mark.slow
def test_several_snapshots_at_once_are_put_in_their_order_and_one_in_two_files_counts_whole(
    snapshots: Lakehouse,
) -> None:
    load(snapshots, 1)
    merge(snapshots, 1)
    load(snapshots, 4, 3, 2, 5)
    assert merge(snapshots, 4).rows.read == 7, "the rows of the first one are not read again"
    assert periods(snapshots) == PERIODS
    given(snapshots, BRONZE, [order(1, 8)], 5)
    merge(snapshots, 5)
    assert periods(snapshots) == sorted([*PERIODS, ("o1", 8, 5, None)])


@pytest.mark.parametrize("table", [NEWEST, pytest.param(SILVER, marks=pytest.mark.slow)])
def test_the_new_content_of_a_snapshots_file_takes_the_place_of_its_rows(snapshots: Lakehouse, table: str) -> None:
    def replace(number: int, *rows: dict[str, Any]) -> None:
        snapshots.deliver(number, "a.json", rows)
        snapshots.run_well(number, BRONZE)

    def states() -> dict[str, int]:
        rows = snapshots.rows(table, "order_id", "amount", *(["__END_AT"] if table == SILVER else []))
        return {key: amount for key, amount, *end in rows if end in ([], [None])}

    load(snapshots, 1, 5)
    merge(snapshots, 5, table)
    replace(5, order(2, 2), order(3, 30), order(4, 4), order(5, -5), order(6, 6), order(6, 7))
    replace(1, order(2, 100), order(9, 9))
    ties = merge(snapshots, 5, table).findings.ties
    assert (ties.keys, [sample.split(" at ")[0] for sample in ties.samples]) == (1, ["order_id=o6"])
    now = states()
    assert now.pop("o6") in (6, 7)
    assert now == {"o2": 2, "o3": 30, "o4": 4}, "an older one changes no newer one"
    assert ["o5" in row["record"] for row in snapshots.quarantine(table)] == [True], "what was refused before is gone"
