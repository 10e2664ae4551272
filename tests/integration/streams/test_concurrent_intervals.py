"""A bronze table with `concurrent_by: interval` has several streams, and is one table for its readers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from embedded.spark.server import SparkServer
from include.catalog import load_catalog
from include.contracts.spec.table_spec import BronzeSpec
from include.control.gates.gates import Gates
from include.control.log.batch import Intent, Stream, StreamPosition, Winner
from include.control.log.delta_log import remaining_commits
from include.control.log.streams import CHANGING, concurrency_at, stream_of, streams_at
from include.errors import NotReadyError, Outcome
from spark_jobs.delta_io.tables import committed_txn
from spark_jobs.layers import streams
from spark_jobs.layers.bronze.bronze import BronzeIngest
from spark_jobs.layers.own_table import FittingWork, batch_request
from spark_jobs.protocol.batches import BatchPlan, BatchWriter, Closing
from spark_jobs.runtime.context import JobContext
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.lakehouse import Lakehouse, order
from tests.support.ledger.delta_tables import day

pytestmark = pytest.mark.slow

BRONZE, SILVER, GOLD = TABLES = ("bronze.orders", "silver.orders", "gold.revenue_daily")
RULE = {"expect_column_values_to_be_between": {"column": "amount", "min_value": 0}, "action": "quarantine"}


def write_spec(shop: Lakehouse, *, concurrent: bool) -> None:
    own = {"concurrent_by": "interval"} if concurrent else {}
    shop.specs(bronze_document(expectations=[RULE], **own), silver_document(), gold_document())


@pytest.fixture
def shop(tmp_path: Path, server: SparkServer) -> Lakehouse:
    """Three days of two orders and a refused one each, and a bronze table that several runs may write."""
    shop = Lakehouse(tmp_path)
    write_spec(shop, concurrent=True)
    for number in (1, 2, 3):
        rows = [order(10 * number + key, amount, of_day=number) for key, amount in enumerate((5, 6, -1))]
        shop.deliver(number, "a.json", rows)
    return shop


@dataclass(frozen=True)
class LateWrite:
    """The work of a driver that pauses between its intent and its write."""

    work: BronzeIngest
    meanwhile: Callable[[], None]

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        return self.work.plan(position)

    def write(self, session: SparkSession, intent: Intent, plan: BatchPlan) -> None:
        self.meanwhile()
        self.work.write(session, intent, plan)

    def close(self, winner: Winner) -> Closing:
        return self.work.close(winner)


def orders_in(shop: Lakehouse, table: str = BRONZE) -> list[str]:
    return [row[0] for row in shop.rows(table, "order_id")]


def orders_of(*numbers: int) -> list[str]:
    return [f"o{10 * number + key}" for number in numbers for key in (0, 1)]


def test_each_interval_has_its_stream_and_the_layers_above_read_them_all(shop: Lakehouse) -> None:
    reports = [shop.run(BRONZE, number) for number in (2, 1, 3)]

    assert [report.outcome for report in reports] == [Outcome.COMMITTED] * 3
    assert [(report.stream, report.batch_seq) for report in reports] == [
        (f"interval-{number}", 1) for number in (3, 2, 4)
    ]
    assert [report.certified_version for report in reports] == [report.version for report in reports]
    assert orders_in(shop) == orders_of(1, 2, 3)
    for table in (SILVER, GOLD):
        assert shop.run(table).outcome is Outcome.COMMITTED
    assert orders_in(shop, SILVER) == orders_of(1, 2, 3)
    assert [shop.run(BRONZE, number).outcome for number in (1, 2, 3)] == [Outcome.NO_OP] * 3
    assert len(shop.quarantine(BRONZE)) == 3


def test_one_certificate_covers_the_batches_of_several_streams(shop: Lakehouse) -> None:
    first = shop.run(BRONZE, 1)
    later = shop.run(BRONZE, 2)

    again = shop.run(BRONZE, 1)

    assert again.outcome is Outcome.NO_OP
    assert (again.version, again.certified_version) == (first.version, later.version)
    results = [recorded.result.version for recorded in Gates(shop.paths).results(BRONZE)]
    assert results == [first.version, later.version], "the gate judges nothing again"


def test_refused_rows_of_several_intervals_are_replayed_once_each_in_their_own_streams(shop: Lakehouse) -> None:
    for number in (1, 2, 3):
        shop.run(BRONZE, number)

    report = shop.replay(BRONZE, assign={"amount": "abs(amount)"})

    assert report.outcome is Outcome.COMMITTED
    assert report.certified_version == report.version
    assert orders_in(shop) == sorted([*orders_of(1, 2, 3), "o12", "o22", "o32"])
    table, spec = shop.paths.table(BRONZE), load_catalog(shop.folder / "tables").spec(BRONZE)
    app_ids = sorted(stream_of(spec, day(number).start).app_id for number in (1, 2, 3))
    txns = [txn for commit in remaining_commits(table, None) for txn in commit.txns.items()]
    assert sorted(txns[:3]) == [(app_id, 1) for app_id in app_ids]
    assert sorted(txns[3:]) == [(app_id, 2) for app_id in app_ids]
    assert shop.replay(BRONZE).outcome is Outcome.NO_OP


def test_a_table_gets_and_loses_its_streams_by_the_next_run_of_its_spec(shop: Lakehouse) -> None:
    write_spec(shop, concurrent=False)
    shop.run(BRONZE, 1)
    write_spec(shop, concurrent=True)

    reports = [shop.run(BRONZE, number) for number in (1, 2)]

    assert [report.outcome for report in reports] == [Outcome.NO_OP, Outcome.COMMITTED]
    assert any("concurrent_by was none and is interval" in note for note in reports[0].notes)
    assert concurrency_at(shop.paths.table(BRONZE)) == "interval"
    write_spec(shop, concurrent=False)
    assert [shop.run(BRONZE, number).outcome for number in (1, 2, 3)] == [
        Outcome.NO_OP,
        Outcome.NO_OP,
        Outcome.COMMITTED,
    ]
    assert concurrency_at(shop.paths.table(BRONZE)) == "none"
    assert orders_in(shop) == orders_of(1, 2, 3)
    assert len(shop.quarantine(BRONZE)) == 3


@pytest.mark.faults
def test_a_change_of_the_streams_whose_driver_died_is_begun_again(
    shop: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_spec(shop, concurrent=False)
    shop.run(BRONZE, 1)
    write_spec(shop, concurrent=True)

    def die(*_: object) -> None:
        raise OSError("the driver dies")

    with monkeypatch.context() as patched:
        patched.setattr(streams, "BatchWriter", die)
        assert shop.run(BRONZE, 2).outcome is Outcome.FAILED
    table = shop.paths.table(BRONZE)
    assert concurrency_at(table) == CHANGING

    assert shop.run(BRONZE, 2).outcome is Outcome.COMMITTED

    assert concurrency_at(table) == "interval"
    assert orders_in(shop) == orders_of(1, 2)
    numbers = [committed_txn(table, stream.app_id) for stream in streams_at(BRONZE, table)]
    assert sorted(numbers) == [*[1] * 10, 2, 2], "each stream has an empty batch, two of them also one with rows"


def test_a_rebuild_says_that_it_needs_one_stream(shop: Lakehouse) -> None:
    shop.run(BRONZE, 1)

    report = shop.rebuild(BRONZE)

    assert report.outcome is Outcome.BAD_INPUT
    assert "concurrent_by cannot be rebuilt" in report.message


def test_a_batch_that_was_planned_before_the_streams_changed_does_not_commit(shop: Lakehouse) -> None:
    write_spec(shop, concurrent=False)
    shop.run(BRONZE, 2)
    old = JobContext(shop.args(BRONZE, 1))
    assert isinstance(old.spec, BronzeSpec)
    seen: list[Outcome] = []

    def load_with_streams() -> None:
        write_spec(shop, concurrent=True)
        seen.append(shop.run(BRONZE, 1).outcome)

    work = FittingWork(old, LateWrite(BronzeIngest(old, old.spec), load_with_streams))

    with pytest.raises(NotReadyError, match="concurrent_by is none in the spec of this run, and interval in the table"):
        BatchWriter(batch_request(old, Stream(BRONZE)), work, old.ops.ledger, old.open_session).run_unleased()

    assert seen == [Outcome.COMMITTED]
    assert orders_in(shop) == orders_of(1, 2)
    assert len(shop.quarantine(BRONZE)) == 2
