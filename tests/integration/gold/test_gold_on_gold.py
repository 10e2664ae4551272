"""Gold tables that read gold tables, on real Delta: what is certified is read, and only what changed is computed."""

from __future__ import annotations

from datetime import date
from random import Random
from typing import Any

import pytest

from include.catalog import load_catalog
from include.control.planning.planner import Planner
from include.errors import Outcome
from include.settings import Settings
from tests.support.documents.specs import gold_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order
from tests.support.ledger.delta_tables import day

BRONZE, SILVER, DAILY, MONTHLY, BEST = (
    *("bronze.orders", "silver.orders"),
    *("gold.revenue_daily", "gold.revenue_monthly", "gold.best_days"),
)
MONTH = "trunc({}, 'MM')"
MONTHLY_DOCUMENT = gold_document(
    MONTHLY,
    sources={"d": {"table": DAILY}},
    refresh_by="month",
    refresh_from={"d": MONTH.format("day")},
    group_by={"month": MONTH.format("d.day")},
    measures={"days": "count(*)", "orders": "sum(d.orders)", "revenue": "sum(d.revenue)"},
)
BEST_DOCUMENT = gold_document(
    BEST,
    sources={
        "m": {"table": MONTHLY},
        "d": {"table": DAILY, "join": "inner", "on": f"m.month <=> {MONTH.format('d.day')}"},
    },
    refresh_by="month",
    refresh_from={"m": "month", "d": MONTH.format("day")},
    group_by={"month": "m.month"},
    measures={"best": "max(d.revenue)", "of": "max(m.revenue)"},
)


@pytest.fixture
def chain(lakehouse: Lakehouse) -> Lakehouse:
    """The orders by day, the days by month, and of each month the best day."""
    lakehouse.specs(MONTHLY_DOCUMENT, BEST_DOCUMENT)
    return lakehouse


def events(random: Random, count: int) -> list[dict[str, Any]]:
    """Return events of a few orders; some move to another day, or to none."""
    rows = [order(random.randint(1, 9), random.randint(-5, 9), random.randint(0, 23)) for _ in range(count)]
    days = (None, "2013-01-03", "2013-01-20", "2013-02-03", "2013-03-01")
    return [{**row, "day": random.choice(days), "event_seq": random.randint(1, 99)} for row in rows]


def groups(rows: list[tuple[Any, ...]], month_of: Any = lambda day: day and day.replace(day=1)) -> dict[Any, list[int]]:
    found: dict[Any, list[int]] = {}
    for at, amount in rows:
        found.setdefault(month_of(at), []).append(amount)
    return found


def by_key(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.faults)])
def test_each_level_has_the_rows_that_all_of_its_sources_together_give(chain: Lakehouse, seed: int) -> None:
    random = Random(seed)
    for number in range(1, 5):
        given(chain, SILVER, events(random, random.randint(1, 6)), number)
        reports = chain.run_all(number, DAILY, MONTHLY, BEST)
        assert {report.exit_code for report in reports} == {0}, [report.message for report in reports]
        amounts = chain.rows(SILVER, "day", "amount")
        daily = {at: sum(of_day) for at, of_day in groups(amounts, lambda at: at).items()}
        monthly = {month: (len(of_month), sum(of_month)) for month, of_month in groups(amounts).items()}
        found = [row[:1] + row[2:] for row in chain.rows(MONTHLY, "month", "days", "orders", "revenue")]
        assert by_key(found) == by_key((month, *values) for month, values in monthly.items())
        best = {month: (max(of_month), sum(of_month)) for month, of_month in groups(list(daily.items())).items()}
        assert by_key(chain.rows(BEST, "month", "best", "of")) == by_key((at, *values) for at, values in best.items())


def test_only_the_groups_of_changed_rows_are_computed_on_each_level(chain: Lakehouse) -> None:
    given(chain, SILVER, [order(1, 5), {**order(2, 7), "day": "2013-02-01"}], 1)
    chain.run_all(1, DAILY, MONTHLY, BEST)
    assert chain.run(BEST, 1).outcome is Outcome.NO_OP
    given(chain, SILVER, [order(3, 4, of_day=2)], 2)
    *_, monthly, best = chain.run_all(2, DAILY, MONTHLY, BEST)
    assert (monthly.rows.read, best.rows.read) == (1, 1)
    assert chain.rows(MONTHLY, "month", "revenue") == [(date(2013, 1, 1), 9), (date(2013, 2, 1), 7)]


def test_a_refused_version_of_a_gold_table_is_read_by_no_other(chain: Lakehouse) -> None:
    rule = {"expect_column_min_to_be_between": {"column": "revenue", "min_value": 0}, "action": "fail"}
    chain.specs(gold_document(expectations=[rule]))
    settings = Settings(root=chain.paths.root, landing=chain.folder / "landing", tables=chain.folder / "tables")
    spec = load_catalog(settings.tables).spec(MONTHLY)
    given(chain, SILVER, [order(1, 5)], 1)
    chain.run_all(1, DAILY, MONTHLY)
    given(chain, SILVER, [order(2, -9)], 2)
    *_, daily = chain.run_all(2, DAILY)
    assert [check.refuses for check in daily.checks] == [True]
    advice = Planner(load_catalog(settings.tables), settings).advise(spec, day(2))
    assert (advice.nothing_new, advice.message) == (True, f"nothing new in {DAILY}")
    assert chain.run(MONTHLY, 2).outcome is Outcome.NO_OP
    given(chain, SILVER, [order(2, 9, 2)], 3)
    chain.run_all(3, DAILY)
    assert Planner(load_catalog(settings.tables), settings).advise(spec, day(3)).message.startswith(f"{DAILY} versions")
    chain.run(MONTHLY, 3)
    assert chain.rows(MONTHLY, "month", "revenue") == [(date(2013, 1, 1), 14)]
