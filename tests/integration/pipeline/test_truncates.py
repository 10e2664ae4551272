"""Truncates on real Delta: every key goes, what comes later stays, and what was older does not come back."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from tests.support.lakehouse import Lakehouse, order
from tests.support.specs import bronze_document, silver_document

BRONZE, SILVER = "bronze.orders", "silver.orders"
DAYS = {
    1: [order(1, 5, 1), order(2, 7, 9)],
    2: [{**order(None, None, 5), "op": "truncate"}, order(3, 4, 4), order(4, 6, 6)],
    3: [order(1, 8, 3), order(5, 2, 7)],
}


@pytest.mark.parametrize("numbers", [pytest.param((1, 2, 3, 2), marks=pytest.mark.faults), (3, 2, 1)])
def test_any_order_of_intervals_ends_in_what_came_after_the_truncate(
    lakehouse: Lakehouse, numbers: tuple[int, ...]
) -> None:
    columns = {**bronze_document()["columns"], "op": {"type": "string"}}
    lakehouse.specs(bronze_document(columns=columns), silver_document(apply_as_truncates="op = 'truncate'"))
    for number in numbers:
        lakehouse.deliver(number, "a.json", DAYS[number])
        for report in lakehouse.run_all(number, BRONZE, SILVER):
            assert report.exit_code == 0, report.message
            assert report.rows.are_conserved
    assert lakehouse.rows(SILVER, "order_id", "amount") == [("o2", 7), ("o4", 6), ("o5", 2)]
    assert not lakehouse.quarantine(SILVER), "a truncate needs no key"


def test_a_truncate_is_remembered_when_every_key_is_worked_out_again(lakehouse: Lakehouse) -> None:
    """Another file was replaced, and bronze has no change feed that says which of its rows went."""
    bronze = bronze_document(maintenance={"change_data_feed": False})
    columns, source = (
        {**bronze["columns"], "op": {"type": "string"}},
        {**bronze["source"], "on_changed_file": "replace"},
    )
    lakehouse.specs(
        {**bronze, "columns": columns, "source": source}, silver_document(apply_as_truncates="op = 'truncate'")
    )
    lakehouse.deliver(1, "truncate.json", DAYS[2])
    lakehouse.deliver(1, "other.json", [order(7, 1, 8)])
    lakehouse.run_all(1, BRONZE, SILVER)
    lakehouse.deliver(1, "other.json", [order(7, 2, 8)])
    *_, report = lakehouse.run_all(1, BRONZE, SILVER)
    assert (report.exit_code, report.rows.updated) == (0, 1), report.message
    assert lakehouse.rows(SILVER, "order_id", "amount") == [("o4", 6), ("o7", 2)]
    tombstones = DeltaTable(str(lakehouse.paths.tombstones(SILVER))).to_pyarrow_table(columns=["order_id"])
    assert tombstones["order_id"].to_pylist() == [None]
