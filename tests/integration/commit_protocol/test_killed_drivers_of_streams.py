"""Drivers of two streams of one bronze table, side by side and killed at any step: nothing is lost, nothing doubled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from embedded.spark.server import SparkServer
from millrace.control.gates.gates import Gates
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.delta_log import latest_version, remaining_commits
from millrace.control.planning.complete_batches import unclosed_batches
from millrace.errors import Outcome
from tests.support.documents.specs import bronze_document
from tests.support.killed_drivers.batches import assert_killed
from tests.support.killed_drivers.drivers import DriverEnd, Drivers, OwnProcess
from tests.support.killed_drivers.outcome import states_of_files
from tests.support.killed_drivers.places import BEFORE_REPORT, FILE_PLACES, FILES_LOADED, IN_THE_WRITE
from tests.support.killed_drivers.steps import Step
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, order

pytestmark = pytest.mark.slow

BRONZE = "bronze.orders"
NEXT_TO_EACH_OTHER = (Step.INTENT, IN_THE_WRITE, Step.COMMIT, BEFORE_REPORT)


@pytest.fixture
def shop(tmp_path: Path, server: SparkServer) -> Lakehouse:
    shop = Lakehouse(tmp_path / "shop")
    shop.specs(bronze_document(expectations=[AT_LEAST_0], concurrent_by="interval"))
    return shop


def deliver(shop: Lakehouse, number: int, file: int) -> None:
    """Deliver a file with two orders and one that is refused."""
    orders = [order(f"{number}.{file}.{key}", amount, of_day=number) for key, amount in enumerate((5, 6, -1))]
    shop.deliver(number, f"{file:02d}.json", orders)


def require_each_row_once(shop: Lakehouse, files: Counter[int]) -> None:
    names = [f"o{number}.{file}" for number, count_ in files.items() for file in range(count_)]
    assert [row[0] for row in shop.rows(BRONZE, "order_id")] == sorted(
        f"{name}.{key}" for name in names for key in "01"
    )
    refused = sorted(row["record"].partition('"order_id":"')[2].partition('"')[0] for row in shop.quarantine(BRONZE))
    assert refused == sorted(f"{name}.2" for name in names)
    table, newest = shop.paths.table(BRONZE), latest_version(shop.paths.table(BRONZE))
    gates = Gates(shop.paths)
    assert unclosed_batches(BRONZE, newest, shop.paths, Ledger(shop.paths), gates) == []
    assert gates.certified(BRONZE) == newest
    won = Counter(txn for commit in remaining_commits(table, None) for txn in commit.txns.items())
    assert won
    assert set(won.values()) == {1}
    states = states_of_files(shop.paths, BRONZE)
    assert {(state.status, state.rows.written if state.rows else 0) for state in states} == {("loaded", 2)}


@pytest.mark.parametrize("place", [Step.INTENT, Step.COMMIT, FILES_LOADED, Step.CLOSED])
def test_a_stream_whose_driver_died_is_completed_by_the_next_run_of_another_stream(shop: Lakehouse, place: str) -> None:
    for number in (1, 2):
        deliver(shop, number, 0)
    shop.run(BRONZE, 1)
    deliver(shop, 1, 1)
    assert_killed(OwnProcess().run(shop, BRONZE, 1, dies=place))
    committed = [commit for commit in remaining_commits(shop.paths.table(BRONZE), None) if commit.txns]

    other = shop.run(BRONZE, 2)

    assert other.outcome is Outcome.COMMITTED
    assert other.certified_version == other.version == latest_version(shop.paths.table(BRONZE))
    assert len(shop.quarantine(BRONZE)) == len(committed) + 1
    again = shop.run(BRONZE, 1)
    assert again.outcome is (Outcome.NO_OP if len(committed) == 2 else Outcome.COMMITTED)
    require_each_row_once(shop, Counter({1: 2, 2: 1}))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("places", [NEXT_TO_EACH_OTHER, pytest.param(FILE_PLACES, marks=pytest.mark.faults)])
def test_drivers_of_two_streams_that_are_killed_side_by_side_lose_and_double_nothing(
    pair: tuple[Drivers, Drivers], shop: Lakehouse, places: Sequence[str]
) -> None:
    other = Lakehouse(shop.folder, reports=[])
    names = count()

    def write_and_die(drivers: Drivers, shop: Lakehouse, number: int, places: Sequence[str]) -> list[DriverEnd]:
        ends = []
        for file, place in enumerate(places):
            deliver(shop, number, file)
            shop.reports.extend([None] * (1 + next(names)))  # type: ignore[list-item]  # each report is a file of its own
            ends.append(drivers.run(shop, BRONZE, number, dies=place))
        return [*ends, drivers.run(shop, BRONZE, number)]

    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(write_and_die, pair[0], shop, 1, places)
        ends = [*write_and_die(pair[1], other, 2, places[::-1]), *one.result()]

    assert sum(end.code < 0 for end in ends) == 2 * len(places), [end.output for end in ends if end.code > 0]
    assert all(not end.report.lost_races for end in ends if end.report), "streams never conflict"
    require_each_row_once(shop, Counter({1: len(places), 2: len(places)}))
