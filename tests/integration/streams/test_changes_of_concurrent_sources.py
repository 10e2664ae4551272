"""The streams of a silver table change with its spec: no row of its sources is lost or read twice (ADR 57)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from embedded.spark.server import SparkServer
from millrace.contracts.job.requests import RowFilter
from millrace.contracts.spec.table_spec import SilverSpec
from millrace.control.log.batch import Stream, StreamPosition
from millrace.control.log.streams import CHANGING, concurrency_at
from millrace.errors import NotReadyError, Outcome
from millrace_spark.layers import streams
from millrace_spark.layers.own_table import FittingWork, batch_request, ensure_own_table
from millrace_spark.layers.silver.silver import SilverMerge
from millrace_spark.layers.silver.tables import silver_shape
from millrace_spark.protocol.batches import BatchPlan, BatchWriter
from millrace_spark.protocol.quarantine import QuarantineWrite
from millrace_spark.runtime.context import JobContext
from tests.support.lakehouse import Lakehouse
from tests.support.silver.divided_orders import EU, SILVER, US, DividedOrders, event

pytestmark = pytest.mark.slow


@pytest.fixture
def orders(tmp_path: Path, server: SparkServer) -> DividedOrders:
    return DividedOrders(Lakehouse(tmp_path))


def die_at(patched: pytest.MonkeyPatch, fence: int) -> None:
    """Let a change of the streams die before this one of its empty batches, counted from 0."""
    done: list[BatchWriter] = []

    def writer(*args: Any) -> BatchWriter:
        if len(done) == fence:
            raise OSError("the driver dies")
        done.append(BatchWriter(*args))
        return done[-1]

    patched.setattr(streams, "BatchWriter", writer)


def change_and_die(orders: DividedOrders, monkeypatch: pytest.MonkeyPatch, fence: int) -> None:
    with monkeypatch.context() as patched:
        die_at(patched, fence)
        assert orders.shop.run(SILVER).outcome is Outcome.FAILED
    assert concurrency_at(orders.shop.paths.table(SILVER)) == CHANGING


@pytest.mark.faults
def test_no_row_is_read_twice_or_lost_when_the_table_gets_and_loses_its_streams_and_drivers_die_at_any_step_of_it(
    orders: DividedOrders, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.spec(None)
    orders.load(EU, 1, event("de1", 1), event("fr2", 2), event("fr3", -1))
    orders.load(US, 1, event("us1", 3))
    orders.merge()
    orders.load(EU, 2, event("de1", 4, 1))
    orders.load(US, 2, event("us2", 5))
    orders.spec()

    for fence in range(6):
        change_and_die(orders, monkeypatch, fence)
    report = orders.merge(2)

    assert any("concurrent_by was changing and is country: " in note for note in report.notes)
    assert orders.amounts() == {"de1": 4, "fr2": 2, "us1": 3, "us2": 5}
    orders.require_read_once()
    orders.load(EU, 3, event("fr2", None, 1))
    orders.load(US, 3, event("us3", 6), event("us4", -1))
    orders.spec(None)
    for fence in (1, 4):
        change_and_die(orders, monkeypatch, fence)
    orders.spec()
    change_and_die(orders, monkeypatch, 4)
    orders.spec(None)
    orders.merge(3)
    assert concurrency_at(orders.shop.paths.table(SILVER)) == "none"
    assert orders.batches()[-1][0] == "main"
    assert orders.amounts() == {"de1": 4, "us1": 3, "us2": 5, "us3": 6}
    assert orders.refused() == ["fr3", "us4"]
    orders.require_read_once()
    assert orders.shop.run(SILVER).outcome is Outcome.NO_OP


def test_a_batch_that_was_planned_before_the_streams_changed_does_not_commit(
    orders: DividedOrders, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.spec()
    for number in (1, 2):
        orders.load(EU, number, event("de1", number, number))
        orders.load(US, number, event(f"us{number}", number))
        if number == 1:
            orders.merge()
    old, stream = JobContext(orders.shop.args(SILVER, 2)), Stream(SILVER, EU)
    assert isinstance(old.spec, SilverSpec)
    work = SilverMerge(old, stream)
    plan = work.plan

    def plan_and_change(position: StreamPosition) -> BatchPlan | None:
        planned = plan(position)
        orders.spec(None)
        orders.merge(2)
        return planned

    monkeypatch.setattr(work, "plan", plan_and_change)

    with pytest.raises(NotReadyError, match="in the spec of this run, and"):
        BatchWriter(batch_request(old, stream), FittingWork(old, work), old.ops.ledger, old.open_session).run_unleased()

    assert orders.amounts() == {"de1": 2, "us1": 1, "us2": 2}
    orders.require_read_once()


def test_a_corrected_row_of_another_sources_key_leaves_the_tombstone_of_that_key(orders: DividedOrders) -> None:
    orders.spec()
    orders.load(EU, 1, event("de1", 1))
    orders.load(US, 1, event("us1", 3, 1), event("us1", None, 5))
    orders.merge()
    assert orders.amounts() == {"de1": 1}
    orders.load(EU, 2, event("us1", 9, 9), event("de2", 2))
    assert orders.shop.run(SILVER, 2).outcome is Outcome.BAD_INPUT
    orders.load(EU, 2, event("de2", 2))
    orders.merge(2)
    orders.load(US, 2, event("us1", 4, 4), event("us2", 5))
    orders.merge(2)
    assert orders.amounts() == {"de1": 1, "de2": 2, "us2": 5}, "us1 ended after its late event"


def test_a_value_moves_to_another_source_only_when_the_table_has_no_row_of_the_first_one_with_it(
    orders: DividedOrders,
) -> None:
    moved = {EU: ["de"], US: ["us", "fr"]}
    orders.spec()
    orders.load(EU, 1, event("de1", 1), event("fr2", 2))
    orders.load(US, 1, event("us1", 3))
    orders.merge()
    orders.load(EU, 1, event("de1", 1))  # replaces the file
    orders.spec(moved)

    report = orders.shop.run(SILVER)

    assert report.outcome is Outcome.BAD_INPUT, (report.message, orders.amounts())
    assert f"1 row of {EU} has a country that is none of its partitions (de), such as fr" in report.message
    orders.spec()
    orders.merge()
    assert orders.amounts() == {"de1": 1, "us1": 3}
    orders.spec(moved)
    orders.load(US, 2, event("fr2", 4))
    orders.merge(2)
    assert orders.amounts() == {"de1": 1, "us1": 3, "fr2": 4}
    orders.require_read_once()


def test_a_batch_of_a_source_whose_driver_died_is_closed_as_that_of_its_source_when_the_table_has_one_stream_again(
    orders: DividedOrders, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.spec(stored_as_scd_type=2)
    orders.load(EU, 1, event("de1", 1), event("de3", -1), event("de4", -4))
    orders.load(US, 1, event("us1", 1), event("us3", -1))
    orders.merge()
    de4 = next(row.id for row in orders.shop.waiting(SILVER) if '"4"' in row.record)
    orders.shop.replay(SILVER, assign={"amount": "4"}, rows=RowFilter(ids=(de4,)))

    def die(*_: object) -> None:
        raise OSError("the driver dies")

    with monkeypatch.context() as patched:
        patched.setattr(QuarantineWrite, "run", die)
        assert orders.shop.run(SILVER, reprocess=True).outcome is Outcome.FAILED
    assert orders.batches()[-1] == (US, 2)
    orders.spec(None, stored_as_scd_type=2)

    orders.merge()

    assert orders.amounts() == {"de1": 1, "de4": 4, "us1": 1}
    assert orders.refused() == ["de3", "de4", "us3"]


def test_neither_a_replay_of_a_table_that_does_not_fit_nor_a_driver_with_another_spec_changes_the_streams(
    orders: DividedOrders,
) -> None:
    orders.spec(None)
    orders.load(EU, 1, event("de1", -1))
    orders.load(US, 1, event("us1", 1))
    orders.merge()
    orders.spec()
    old = JobContext(orders.shop.args(SILVER))
    assert isinstance(old.spec, SilverSpec)
    orders.spec(keys=["country", "order_id", "day"])

    reports = orders.shop.replay(SILVER, assign={"amount": "1"}), orders.shop.run(SILVER)

    assert all("does not fit its spec" in report.message for report in reports), [each.message for each in reports]
    assert orders.amounts() == {"us1": 1}
    ensure_own_table(old, silver_shape(old.spec))
    assert concurrency_at(orders.shop.paths.table(SILVER)) == "none"
