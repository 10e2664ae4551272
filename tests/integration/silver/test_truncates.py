"""Truncates on real Delta: every key is deleted, later events stay, and older events do not come back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.documents.specs import bronze_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order
from tests.support.silver.silver_models import tombstones

BRONZE, SILVER = "bronze.orders", "silver.orders"
DAYS = {
    1: [order(1, 5, 1), order(2, 7, 9)],
    2: [{**order(None, None, 5), "op": "truncate"}, order(3, 4, 4), order(4, 6, 6)],
    3: [order(1, 8, 3), order(5, 2, 7)],
}


def state(lakehouse: Lakehouse, **changes: Any) -> None:
    columns = {**bronze_document()["columns"], "op": {"type": "string"}}
    lakehouse.specs(bronze_document(columns=columns, **changes), silver_document(apply_as_truncates="op = 'truncate'"))


@pytest.mark.parametrize(
    "numbers", [pytest.param((1, 2, 3, 2), marks=pytest.mark.faults), pytest.param((3, 2, 1), marks=pytest.mark.slow)]
)
def test_any_order_of_intervals_ends_in_what_came_after_the_truncate(
    lakehouse: Lakehouse, numbers: tuple[int, ...]
) -> None:
    state(lakehouse)
    for number in numbers:
        given(lakehouse, BRONZE, DAYS[number], number)
        assert lakehouse.run(SILVER, number).rows.are_conserved
    assert lakehouse.rows(SILVER, "order_id", "amount") == [("o2", 7), ("o4", 6), ("o5", 2)]
    assert not lakehouse.quarantine(SILVER), "a truncate needs no key"


@pytest.mark.faults
def test_a_truncate_of_a_replaced_file_is_remembered_without_a_change_feed(lakehouse: Lakehouse) -> None:
    source = {**bronze_document()["source"], "on_changed_file": "replace"}
    state(lakehouse, source=source, maintenance={"change_data_feed": False})
    for rows in ([{**order(None, None, 5), "op": "truncate"}, order(1, 5, 6)], [order(2, 7, 7), order(3, 1, 4)]):
        lakehouse.deliver(1, "a.json", rows)
        assert {report.exit_code for report in lakehouse.run_all(1, BRONZE, SILVER)} == {0}
    assert lakehouse.rows(SILVER, "order_id", "amount") == [("o2", 7)]
    assert [(key, sequence) for key, (sequence, _) in tombstones(lakehouse, SILVER).items()] == [(None, (5, 1))]
