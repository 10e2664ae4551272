"""Gold tables that read gold tables, on real Delta: what is certified is read, and only what changed is computed."""

from __future__ import annotations

from datetime import date

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


def test_only_the_groups_of_changed_rows_are_computed_on_each_level(chain: Lakehouse) -> None:
    given(chain, SILVER, [order(1, 5), {**order(2, 7), "day": "2013-02-01"}, {**order(4, 3), "day": None}], 1)
    chain.run_all(1, DAILY, MONTHLY, BEST)
    assert chain.run(BEST, 1).outcome is Outcome.NO_OP
    # New orders, and one that has no day any more, in the first month and in none.
    given(chain, SILVER, [order(3, 4, of_day=2), order(5, 2, of_day=3), {**order(1, 6, 9), "day": None}], 2)
    *_, monthly, best = chain.run_all(2, DAILY, MONTHLY, BEST)
    assert (monthly.rows.read, best.rows.read) == (2, 2)
    january, february = date(2013, 1, 1), date(2013, 2, 1)
    assert set(chain.rows(MONTHLY, "month", "days", "orders", "revenue", "_batch_seq")) == {
        (january, 2, 2, 6, 2), (february, 1, 1, 7, 1), (None, 1, 2, 9, 2)
    }  # fmt: skip
    assert set(chain.rows(BEST, "month", "best", "of", "_batch_seq")) == {
        (january, 4, 6, 2), (february, 7, 7, 1), (None, 9, 9, 2)
    }  # fmt: skip


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
