"""A silver table with `concurrent_by` has a stream for each of its sources, and is one table for its readers."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedded.spark.server import SparkServer
from millrace.control.gates.gates import Gates
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import open_table
from millrace.errors import Outcome
from tests.support.lakehouse import Lakehouse
from tests.support.silver.divided_orders import EU, SILVER, US, DividedOrders, event


@pytest.fixture
def orders(tmp_path: Path, server: SparkServer) -> DividedOrders:
    return DividedOrders(Lakehouse(tmp_path))


def test_each_source_has_its_stream_and_the_table_has_the_rows_of_both(orders: DividedOrders) -> None:
    orders.spec(stored_as_scd_type=2, except_column_list=["event_at", "event_seq", "day"])
    orders.load(EU, 1, event("de1", 1, 1), event("fr2", 2, 1), event("fr2", None, 2), event("de3", -1))
    orders.load(US, 1, event("us1", 3, 1), event("us2", 2, 1), event("us3", -1), event("us4", None, 4))

    report = orders.merge()

    assert orders.batches() == [(US, 1), (EU, 1)]
    assert (report.rows.read, report.rows.quarantined, report.rows.inserted) == (8, 2, 4)
    late = event("us1", 0, 0), event("us2", 2, 0), event("us4", 9, 3)
    orders.load(US, 2, *late, event("us1", 5, 2), event("us2", None, 2), event("us5", 5))
    orders.merge(2)
    assert orders.batches()[2:] == [(US, 2)], "the other source has nothing new"
    assert orders.shop.run(SILVER, 3).outcome is Outcome.NO_OP
    assert orders.refused() == ["de3", "us3"]
    orders.require_read_once()
    columns = ["order_id", "amount", "country", "__START_AT", "__END_AT"]
    assert open_table(orders.shop.paths.table(SILVER)).to_pyarrow_table().column_names[:5] == columns
    rows = orders.shop.rows(SILVER, "country", "order_id", "amount", "__START_AT", "__END_AT")
    periods = [
        (f"{country}{order}", amount, *(at and at["event_seq"] for at in between))
        for country, order, amount, *between in rows
    ]
    assert periods == [
        *(("de1", 1, 1, None), ("fr2", 2, 1, 2), ("us1", 0, 0, 1), ("us1", 3, 1, 2), ("us1", 5, 2, None)),
        *(("us2", 2, 0, 2), ("us4", 9, 3, 4), ("us5", 5, 0, None)),
    ]


@pytest.mark.slow
def test_a_source_that_leaves_its_partitions_is_refused_and_the_others_and_the_batch_of_a_dead_driver_are_completed(
    orders: DividedOrders, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, gates = orders.shop.paths.table(SILVER), Gates(orders.shop.paths)
    orders.spec()
    orders.load(EU, 1, event("de1", 1), event("fr2", 2))
    orders.load(US, 1, event("us1", 3))
    orders.merge()
    orders.load(EU, 2, event("de1", 2, 1))

    def die(*_: object, **__: object) -> None:
        raise OSError("the driver dies")

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "record_closed", die)
        assert orders.shop.run(SILVER, 2).outcome is Outcome.FAILED
    assert gates.certified(SILVER) < latest_version(table)
    strays = [event("us1", 8, 1), event("us9", None, 1), event("us8", -1)]
    orders.load(EU, 3, event("de1", 7, 2), *strays, event("de3", -1))
    orders.load(US, 2, event("us1", 4, 1))

    report = orders.shop.run(SILVER, 3)

    assert report.outcome is Outcome.BAD_INPUT
    assert f"2 rows of {EU} have a country that is none of its partitions (de, fr), such as us" in report.message
    assert orders.amounts() == {"de1": 2, "fr2": 2, "us1": 4}
    assert gates.certified(SILVER) == latest_version(table)
    assert orders.refused() == []

    orders.load(US, 3, event("de9", 1))
    first, *lines = orders.shop.run(SILVER, 3).message.splitlines()
    assert first == "silver.orders: 2 of 2 streams ended with an error"
    text = f"1 row of {US} has a country that is none of its partitions (us), such as de"
    assert sum(text in line for line in lines) == 1
    assert sum(f" of {EU} have a country that is none of its partitions" in line for line in lines) == 1

    orders.load(EU, 3, event("de1", 7, 2), event("de3", -1))
    orders.load(US, 3, event("us5", 5))
    orders.merge(3)
    assert orders.amounts() == {"de1": 7, "fr2": 2, "us1": 4, "us5": 5}
    assert orders.refused() == ["de3"]
    orders.require_read_once()


@pytest.mark.slow
def test_refused_rows_are_replayed_in_the_streams_of_their_sources(orders: DividedOrders) -> None:
    orders.spec()
    orders.load(EU, 1, event("de1", -1), event("fr2", 2))
    orders.load(US, 1, event("us1", -3), event("us2", 2))
    orders.merge()

    report = orders.shop.replay(SILVER, assign={"amount": "abs(amount)"})

    assert report.outcome is Outcome.COMMITTED, report.message
    assert report.certified_version == report.version
    assert sorted(orders.batches()[2:]) == [(EU, 2), (US, 2)]
    assert orders.shop.replay(SILVER).outcome is Outcome.NO_OP
    right = {"de1": 1, "fr2": 2, "us1": 3, "us2": 2}
    assert orders.amounts() == right
    orders.merge(reprocess=True)
    assert orders.amounts() == right
    orders.load(EU, 1, event("fr2", 2))
    orders.merge()
    assert orders.amounts() == {key: amount for key, amount in right.items() if key != "de1"}
    assert orders.refused() == ["us1"]
    orders.require_read_once()
