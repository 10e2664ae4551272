"""A bronze table with `concurrent_by: interval` has several streams, and is one table for its readers."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from embedded.spark.server import SparkServer
from millrace.catalog import load_catalog
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.gates.gates import Gates
from millrace.control.log.batch import Intent, Stream
from millrace.control.log.delta_log import remaining_commits
from millrace.control.log.streams import concurrency_at, stream_of
from millrace.errors import NotReadyError, Outcome
from millrace_spark.layers.bronze.bronze import BronzeIngest
from millrace_spark.layers.own_table import FittingWork, batch_request
from millrace_spark.protocol.batches import BatchPlan, BatchWriter
from millrace_spark.runtime.context import JobContext
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, copy_lakehouse, order
from tests.support.ledger.delta_tables import day

pytestmark = pytest.mark.slow

BRONZE, SILVER, GOLD = ("bronze.orders", "silver.orders", "gold.revenue_daily")


def write_spec(shop: Lakehouse, *, concurrent: bool) -> None:
    own = {"concurrent_by": "interval"} if concurrent else {}
    shop.specs(bronze_document(expectations=[AT_LEAST_0], **own), silver_document(), gold_document())


def three_days(folder: Path) -> Lakehouse:
    """Three days of two orders and a refused one each, and a bronze table that several runs may write."""
    shop = Lakehouse(folder)
    write_spec(shop, concurrent=True)
    for number in (1, 2, 3):
        rows = [order(10 * number + key, amount, of_day=number) for key, amount in enumerate((5, 6, -1))]
        shop.deliver(number, "a.json", rows)
    return shop


@pytest.fixture(scope="module")
def loaded(server: SparkServer, tmp_path_factory: pytest.TempPathFactory) -> Lakehouse:
    """These days, each loaded by a run of its own; those of its reports are kept."""
    shop = three_days(tmp_path_factory.mktemp("loaded") / "shop")
    for number in (2, 1, 3):
        shop.run(BRONZE, number)
    return shop


@pytest.fixture
def one_stream(tmp_path: Path, server: SparkServer) -> Lakehouse:
    """These days, of which the orders of the first one are in a bronze table with one stream."""
    shop = three_days(tmp_path)
    write_spec(shop, concurrent=False)
    given(shop, BRONZE, [order(10 + key, amount) for key, amount in enumerate((5, 6))], name="a.json")
    return shop


def orders_in(shop: Lakehouse, table: str = BRONZE) -> list[str]:
    return [row[0] for row in shop.rows(table, "order_id")]


def orders_of(*numbers: int) -> list[str]:
    return [f"o{10 * number + key}" for number in numbers for key in (0, 1)]


def test_each_interval_has_its_stream_and_the_layers_above_read_them_all(loaded: Lakehouse, tmp_path: Path) -> None:
    reports, shop = loaded.reports, copy_lakehouse(loaded, tmp_path / "shop")

    assert [report.outcome for report in reports] == [Outcome.COMMITTED] * 3
    assert [(report.stream, report.batch_seq) for report in reports] == [
        (f"interval-{number}", 1) for number in (3, 2, 4)
    ]
    assert [report.certified_version for report in reports] == [report.version for report in reports]
    assert orders_in(shop) == orders_of(1, 2, 3)
    again = [shop.run(BRONZE, number) for number in (2, 1, 3)]
    assert [(report.outcome, report.version) for report in again] == [(Outcome.NO_OP, one.version) for one in reports]
    assert {report.certified_version for report in again} == {reports[-1].version}, "one certificate covers them all"
    results = [recorded.result.version for recorded in Gates(shop.paths).results(BRONZE)]
    assert results == [report.version for report in reports], "the gate judges nothing again"
    for table in (SILVER, GOLD):
        assert shop.run(table).outcome is Outcome.COMMITTED
    assert orders_in(shop, SILVER) == orders_of(1, 2, 3)
    assert len(shop.quarantine(BRONZE)) == 3


def test_refused_rows_of_several_intervals_are_replayed_once_each_in_their_own_streams(
    loaded: Lakehouse, tmp_path: Path
) -> None:
    shop = copy_lakehouse(loaded, tmp_path / "shop")

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


def test_a_rebuild_says_that_it_needs_one_stream(loaded: Lakehouse, tmp_path: Path) -> None:
    report = copy_lakehouse(loaded, tmp_path / "shop").rebuild(BRONZE)

    assert report.outcome is Outcome.BAD_INPUT
    assert "concurrent_by cannot be rebuilt" in report.message


def test_a_table_gets_and_loses_its_streams_by_the_next_run_of_its_spec(one_stream: Lakehouse) -> None:
    write_spec(one_stream, concurrent=True)

    reports = [one_stream.run(BRONZE, number) for number in (1, 2)]

    assert [report.outcome for report in reports] == [Outcome.NO_OP, Outcome.COMMITTED]
    assert any("concurrent_by was none and is interval" in note for note in reports[0].notes)
    assert concurrency_at(one_stream.paths.table(BRONZE)) == "interval"
    write_spec(one_stream, concurrent=False)
    assert [one_stream.run(BRONZE, number).outcome for number in (1, 2, 3)] == [
        Outcome.NO_OP,
        Outcome.NO_OP,
        Outcome.COMMITTED,
    ]
    assert concurrency_at(one_stream.paths.table(BRONZE)) == "none"
    assert orders_in(one_stream) == orders_of(1, 2, 3)
    assert len(one_stream.quarantine(BRONZE)) == 2


def test_a_batch_that_was_planned_before_the_streams_changed_does_not_commit(
    one_stream: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = JobContext(one_stream.args(BRONZE, 2))
    assert isinstance(old.spec, BronzeSpec)
    work = BronzeIngest(old, old.spec)
    write, seen = work.write, list[Outcome]()

    def load_with_streams_first(session: SparkSession, intent: Intent, plan: BatchPlan) -> None:
        write_spec(one_stream, concurrent=True)
        seen.append(one_stream.run(BRONZE, 2).outcome)
        write(session, intent, plan)

    monkeypatch.setattr(work, "write", load_with_streams_first)
    request, fitting = batch_request(old, Stream(BRONZE)), FittingWork(old, work)

    with pytest.raises(NotReadyError, match="concurrent_by is none in the spec of this run, and interval in the table"):
        BatchWriter(request, fitting, old.ops.ledger, old.open_session).run_unleased()

    assert seen == [Outcome.COMMITTED]
    assert orders_in(one_stream) == orders_of(1, 2)
    assert len(one_stream.quarantine(BRONZE)) == 1
