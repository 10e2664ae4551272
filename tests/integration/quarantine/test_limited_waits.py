"""A row waits for another table as long as its rule allows, and then for a person."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
import time_machine
from typer.testing import CliRunner

from embedded.spark.server import SparkServer
from millrace.cli.app import app
from millrace.contracts.job.report import JobReport
from millrace.contracts.row_status import RowStatus
from millrace.errors import Outcome
from tests.support.given import given
from tests.support.lakehouse import Lakehouse
from tests.support.silver.known_customers import (
    BRONZE_CUSTOMERS,
    BRONZE_ORDERS,
    CUSTOMERS,
    ORDERS,
    customer,
    known_customer,
    order_of,
    shop_documents,
)

LIMIT, SECOND = timedelta(days=2), timedelta(seconds=1)
SHOW, LIST = ("quarantine", "show", ORDERS), ("quarantine", "list")
WAITS = "1 row of silver.orders waits for silver.customers, and will be replayed by itself"


@pytest.fixture(scope="module")
def made(server: SparkServer, tmp_path_factory: pytest.TempPathFactory) -> Lakehouse:
    """Order o1 is of a customer that is known, o2 waits for c2 for two days at most."""
    shop = Lakehouse(tmp_path_factory.mktemp("made"))
    shop.specs(*shop_documents(known_customer(wait_at_most="2 days"), quarantine={"warn_after": "47 hours"}))
    for table in (BRONZE_CUSTOMERS, CUSTOMERS):
        given(shop, table, [customer(1, 1)])
    given(shop, BRONZE_ORDERS, [order_of(1, 1, 1), order_of(2, 2, 2)])
    assert shop.run_well(1, ORDERS).rows.quarantined == 1
    return shop


def limit(shop: Lakehouse) -> datetime:
    """Return when the row in quarantine has waited as long as it may."""
    [row] = shop.waiting(ORDERS)
    return row.first_seen + LIMIT


def add_customer(shop: Lakehouse, number: int) -> None:
    given(shop, CUSTOMERS, [customer(number, number)])


def run_at(shop: Lakehouse, at: datetime) -> JobReport:
    with time_machine.travel(at, tick=False):
        return shop.run_well(1, ORDERS)


def answer_at(shop: Lakehouse, at: datetime, *words: str) -> str:
    """Return what a command prints at a time, in one line."""
    with time_machine.travel(at, tick=False):
        answer = CliRunner().invoke(app, words, env={**shop.environment(), "COLUMNS": "300"})
    assert answer.exit_code == 0, answer.output
    return " ".join(answer.output.split())


def assert_came(shop: Lakehouse, report: JobReport) -> None:
    """Check that a run replayed order o2 once, and nothing else."""
    assert report.rows.model_dump(exclude_defaults=True) == {"read": 1, "applied": 1, "inserted": 1}, report.message
    assert shop.rows(ORDERS, "order_id") == [("o1",), ("o2",)]
    assert [row.status for row in shop.waiting(ORDERS, *RowStatus)] == [RowStatus.REPLAYED]


def test_from_its_limit_on_a_row_waits_for_a_person_though_its_customer_has_come_unless_it_may_wait_longer(
    shop: Lakehouse,
) -> None:
    at, plan = limit(shop), ("plan", "--interval", "2013-01-01")
    before = at - SECOND
    assert f"waits for silver.customers until {at:%Y-%m-%d %H:%M} UTC" in answer_at(shop, before, *SHOW)
    assert all(WAITS in answer_at(shop, before, *words) for words in (LIST, plan))
    assert run_at(shop, before).outcome is Outcome.NO_OP
    add_customer(shop, 2)

    report = run_at(shop, at)

    assert (report.outcome, [row.attempts for row in shop.waiting(ORDERS)]) == (Outcome.NO_OP, [0])
    shown = answer_at(shop, at, *SHOW)
    assert (" open " in shown, "waits for" in shown) == (True, False)
    assert "1 row of silver.orders waits in quarantine for more than 47 hours" in " ".join(report.notes)
    assert not any(WAITS in answer_at(shop, at, *words) for words in (LIST, plan))
    shop.specs(*shop_documents(known_customer(wait_at_most="3 days"), quarantine={"warn_after": "47 hours"}))
    report = run_at(shop, at)
    assert_came(shop, report)
    assert "replays 1 row that waited for silver.customers" in " ".join(report.notes)
    assert run_at(shop, at).outcome is Outcome.NO_OP


@pytest.mark.slow
def test_a_row_that_a_clock_ahead_has_left_comes_with_the_next_version_of_the_other_table(
    shop: Lakehouse,
) -> None:
    ahead = limit(shop)
    add_customer(shop, 2)
    given(shop, BRONZE_ORDERS, [order_of(1, 1, 3)])
    assert run_at(shop, ahead).rows.updated == 1
    assert run_at(shop, ahead - SECOND).outcome is Outcome.NO_OP, "the last batch has pinned that version already"
    add_customer(shop, 3)
    assert_came(shop, run_at(shop, ahead - SECOND))
