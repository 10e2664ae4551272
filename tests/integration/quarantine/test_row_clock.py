"""Row rules that read the clock: each row has one verdict, whenever a batch reads it again."""

from __future__ import annotations

import pytest

from tests.support.documents.specs import bronze_document, silver_document
from tests.support.lakehouse import Lakehouse, order
from tests.support.ledger.delta_tables import day

NOT_FROM_THE_FUTURE = {
    "expect_sql": {"condition": "event_at <= current_timestamp() and day <= date_add(current_date, 1)"},
    "action": "quarantine",
}
BRONZE, SILVER = "bronze.orders", "silver.orders"


@pytest.mark.parametrize("ruled", [SILVER, pytest.param(BRONZE, marks=pytest.mark.slow)])
def test_a_row_is_judged_as_of_the_time_at_which_it_came_and_a_replayed_one_as_of_the_replay(
    lakehouse: Lakehouse, ruled: str
) -> None:
    rules = {"expectations": [NOT_FROM_THE_FUTURE]}
    typed = {**bronze_document()["columns"], "event_at": {"type": "timestamp"}, "day": {"type": "date"}}
    lakehouse.specs(
        bronze_document(columns=typed, **(rules if ruled == BRONZE else {})),
        silver_document(stored_as_scd_type=2, sequence_by=["event_at"], **(rules if ruled == SILVER else {})),
    )
    noon = day(1).start.replace(hour=12)
    lakehouse.deliver(1, "a.json", [order(1, 5, 8), order(1, 6, 15), order(2, 7, 15)])
    lakehouse.run(BRONZE, at=noon)
    lakehouse.run(SILVER)
    assert lakehouse.rows(SILVER, "order_id", "amount") == [("o1", 5)]
    assert len(lakehouse.waiting(ruled)) == 2, "now they are in the past, and were not when they came"

    lakehouse.deliver(1, "late.json", [order(1, 4, 7)])
    lakehouse.run(BRONZE, at=noon)
    lakehouse.run(SILVER)
    assert lakehouse.rows(SILVER, "order_id", "amount") == [("o1", 4), ("o1", 5)], "all events of o1 were read again"
    assert len(lakehouse.waiting(ruled)) == 2

    lakehouse.replay(ruled)
    lakehouse.run(SILVER)
    assert lakehouse.rows(SILVER, "order_id", "amount") == [("o1", 4), ("o1", 5), ("o1", 6), ("o2", 7)]
