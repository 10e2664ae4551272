"""Drivers that replay quarantined rows die at every step: each row is in its table once, or waits for somebody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from embedded.airflow.standalone import clean_environment
from embedded.spark.server import SparkServer
from include.contracts.job.report import JobReport
from include.contracts.job.requests import QuarantineRequest
from include.contracts.row_status import RowStatus
from include.errors import ExitCode, Outcome
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.killed_drivers.batches import assert_killed, run_successfully, wait_for_late_writes
from tests.support.killed_drivers.drivers import Drivers
from tests.support.killed_drivers.outcome import outcome
from tests.support.killed_drivers.places import IN_THE_WRITE, QUARANTINE_PLACES, REFUSALS_RECORDED
from tests.support.killed_drivers.steps import Step
from tests.support.lakehouse import Lakehouse, copy_lakehouse, order

pytestmark = pytest.mark.faults

BRONZE, SILVER = TABLES = ("bronze.orders", "silver.orders")
REQUEST = QuarantineRequest(
    assign={"amount": "abs(amount)", "event_at": "coalesce(event_at, timestamp'2013-01-01 09:00:00')"}, said_by="ann"
)
EVENTS = [
    order(1, -5, 8),
    order(2, 7, 9),
    order(2, -6, 8),
    order(3, -1000, 8),
    order(4, 4, 8),
    {**order(4, None, op="delete"), "event_at": None},
    {**order(5, -5, 8), "order_id": None},
    "{broken",
]
"""For silver: to be inserted, late for o2, still out of bounds, a delete without its time, one that has no key."""


@dataclass(frozen=True)
class Replayed:
    """A replay that nobody killed: what it found, what it left behind, and its report."""

    table: str
    before: Lakehouse
    end: dict[str, Any]
    report: JobReport


Clean = Callable[[str], Replayed]


@pytest.fixture(scope="module")
def clean(drivers: Drivers, tmp_path_factory: pytest.TempPathFactory) -> Clean:
    """Replays of a table, each made when it is asked for first."""
    return cache(lambda table: undisturbed(drivers, tmp_path_factory.mktemp("replayed"), table))


def undisturbed(drivers: Drivers, folder: Path, table: str) -> Replayed:
    """A replay of a table; the bronze one refuses by the same rules in a lakehouse of its own."""
    bounds = {"column": "amount", "min_value": 0, "max_value": 99}
    rules = [{"expect_column_values_to_be_between": bounds, "action": "quarantine"}]
    columns = {**bronze_document()["columns"], "op": {"type": "string"}}
    of_bronze = {"expectations": rules} if table == BRONZE else {}
    shop = Lakehouse(folder / "shop")
    shop.specs(
        bronze_document(columns=columns, **of_bronze),
        silver_document(apply_as_deletes="op = 'delete'", expectations=rules),
    )
    shop.deliver(1, "a.json", EVENTS)
    for written in TABLES[: TABLES.index(table) + 1]:
        run_successfully(drivers, shop, written)
    before = copy_lakehouse(shop, folder / "before")
    report = replay_well(drivers, shop, table)
    return Replayed(table, before, end_of(shop, table), report)


def replay_well(drivers: Drivers, shop: Lakehouse, table: str) -> JobReport:
    ended = drivers.replay(shop, table, REQUEST)
    assert ended.code == ExitCode.OK, ended.output
    assert ended.report is not None
    return ended.report


def end_of(shop: Lakehouse, table: str) -> dict[str, Any]:
    """All that the lakehouse holds of the table, and where each quarantined row stands."""
    rows = {row.id: (row.status, row.attempts, row.fix, row.reasons) for row in shop.waiting(table, *RowStatus)}
    return {**outcome(shop.paths, table), "quarantined": rows}


def assert_same(shop: Lakehouse, clean: Replayed) -> None:
    end = end_of(shop, clean.table)
    assert {part: end[part] for part in end} == clean.end


def test_the_clean_replays_have_every_fate_that_a_row_can_have(clean: Clean) -> None:
    assert fates(clean(BRONZE)) == {"read": 5, "applied": 3, "quarantined": 2, "inserted": 3}


def test_the_clean_replays_of_silver_have_every_fate_too(clean: Clean) -> None:
    replayed = clean(SILVER)
    assert fates(replayed) == {
        "read": 5, "applied": 2, "superseded": 1, "quarantined": 2, "inserted": 1, "deleted": 1
    }  # fmt: skip
    assert replayed.before.rows(SILVER, "order_id", "amount") == [("o2", 7), ("o4", 4)]
    assert len(replayed.end["rows"]["tombstones"]) == 1


def fates(replayed: Replayed) -> dict[str, int]:
    stands = [status for status, *_ in replayed.end["quarantined"].values()]
    assert (stands.count("open"), stands.count("replayed")) == (2, 3)
    return replayed.report.rows.model_dump(exclude_defaults=True)


@pytest.mark.parametrize("table", TABLES)
def test_a_replay_that_is_killed_at_every_step_in_turn_ends_like_one_that_was_not(
    drivers: Drivers, clean: Clean, tmp_path: Path, table: str
) -> None:
    shop = copy_lakehouse(clean(table).before, tmp_path / "shop")
    places = [place for place in QUARANTINE_PLACES if place != IN_THE_WRITE]
    if table == SILVER:
        places.insert(places.index(Step.RECORDED) + 1, Step.TOMBSTONES)
    for place in places:
        assert_killed(drivers.replay(shop, table, REQUEST, dies=place))

    ended = drivers.replay(shop, table, REQUEST)

    assert ended.code == ExitCode.OK, ended.output
    assert_conserved(shop, clean(table))
    through = shop.waiting(table, RowStatus.REPLAYED)
    assert {row.attempts for row in through} == {1}, "what is through is not tried again"


def assert_conserved(shop: Lakehouse, clean: Replayed) -> None:
    """The tables hold what they hold without a death, and each row is through or waits."""
    end = end_of(shop, clean.table)
    for part in ("main", "quarantine", "tombstones"):
        assert end["rows"].get(part) == clean.end["rows"].get(part)
    assert end["certified"] is not None
    stands = {row: status for row, (status, *_) in end["quarantined"].items()}
    assert stands == {row: status for row, (status, *_) in clean.end["quarantined"].items()}


@pytest.mark.parametrize("place", QUARANTINE_PLACES)
@pytest.mark.parametrize("table", TABLES)
def test_one_plain_run_makes_good_what_a_replay_left_that_died_anywhere(
    drivers: Drivers, clean: Clean, tmp_path: Path, table: str, place: str
) -> None:
    shop = copy_lakehouse(clean(table).before, tmp_path / "shop")
    assert_killed(drivers.replay(shop, table, REQUEST, dies=place))

    report = replay_well(drivers, shop, table)

    if place == IN_THE_WRITE:
        wait_for_late_writes(shop, table, report)
    assert_conserved(shop, clean(table))


@pytest.mark.parametrize(
    ("table", "place"),
    [
        (BRONZE, Step.COMMIT),
        (SILVER, Step.COMMIT),
        (BRONZE, REFUSALS_RECORDED),
    ],
)
def test_an_ordinary_run_of_the_table_finishes_what_a_dead_replay_left(
    drivers: Drivers, clean: Clean, tmp_path: Path, table: str, place: str
) -> None:
    shop = copy_lakehouse(clean(table).before, tmp_path / "shop")
    assert_killed(drivers.replay(shop, table, REQUEST, dies=place))

    assert run_successfully(drivers, shop, table).outcome == Outcome.NO_OP

    assert_same(shop, clean(table))


@pytest.fixture
def others(server: SparkServer, tmp_path: Path) -> Iterator[Drivers]:
    with Drivers({**clean_environment(), **server.client_env()}, tmp_path / "others.log") as drivers:
        yield drivers


@pytest.mark.parametrize("table", TABLES)
def test_two_replays_of_the_same_rows_at_once_bring_each_row_once(
    drivers: Drivers, others: Drivers, clean: Clean, tmp_path: Path, table: str
) -> None:
    shop = copy_lakehouse(clean(table).before, tmp_path / "shop")
    with ThreadPoolExecutor(2) as pool:
        ends = [pool.submit(one.replay, shop, table, REQUEST) for one in (drivers, others)]
        codes = [end.result().code for end in ends]
    assert codes == [ExitCode.OK, ExitCode.OK]
    assert_conserved(shop, clean(table))
