"""Gold tables that read gold tables, on real Delta: what is certified is read, and only what changed is computed."""

from __future__ import annotations

from datetime import date

from include.catalog import load_catalog
from include.control.planning.planner import Planner
from include.errors import Outcome
from include.settings import Settings
from tests.support.documents.specs import gold_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order
from tests.support.ledger.delta_tables import day

SILVER, DAILY, MONTHLY, BEST = "silver.orders", "gold.revenue_daily", "gold.revenue_monthly", "gold.best_days"
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


def test_only_groups_of_certified_changes_are_computed_on_each_level(lakehouse: Lakehouse) -> None:
    """The orders by day, the days by month, and of each month the best day."""
    rule = {"expect_column_min_to_be_between": {"column": "revenue", "min_value": 0}, "action": "fail"}
    lakehouse.specs(gold_document(expectations=[rule]), MONTHLY_DOCUMENT, BEST_DOCUMENT)
    folder = lakehouse.folder
    settings = Settings(root=lakehouse.paths.root, landing=folder / "landing", tables=folder / "tables")
    monthly_spec = load_catalog(settings.tables).spec(MONTHLY)
    given(lakehouse, SILVER, [order(1, 5), {**order(2, 7), "day": "2013-02-01"}, {**order(4, 3), "day": None}], 1)
    lakehouse.run_all(1, DAILY, MONTHLY, BEST)
    assert lakehouse.run(BEST, 1).outcome is Outcome.NO_OP

    given(lakehouse, SILVER, [order(3, -9, of_day=2)], 2)
    assert [check.refuses for check in lakehouse.run(DAILY, 2).checks] == [True]
    advice = Planner(load_catalog(settings.tables), settings).advise(monthly_spec, day(2))
    assert (advice.nothing_new, advice.message) == (True, f"nothing new in {DAILY}")
    assert lakehouse.run(MONTHLY, 2).outcome is Outcome.NO_OP, "a refused version is read by no other table"

    # The order is right now; another one is new, and one has no day any more: in the first month and in none.
    right, undated = order(3, 4, 9, of_day=2), {**order(1, 6, 9), "day": None}
    given(lakehouse, SILVER, [right, order(5, 2, of_day=3), undated], 3)
    lakehouse.run(DAILY, 3)
    advice = Planner(load_catalog(settings.tables), settings).advise(monthly_spec, day(3))
    assert advice.message.startswith(f"{DAILY} versions")
    monthly, best = lakehouse.run_all(3, MONTHLY, BEST)
    assert (monthly.rows.read, best.rows.read) == (2, 2)
    january, february = date(2013, 1, 1), date(2013, 2, 1)
    assert set(lakehouse.rows(MONTHLY, "month", "days", "orders", "revenue", "_batch_seq")) == {
        (january, 2, 2, 6, 2), (february, 1, 1, 7, 1), (None, 1, 2, 9, 2)
    }  # fmt: skip
    assert set(lakehouse.rows(BEST, "month", "best", "of", "_batch_seq")) == {
        (january, 4, 6, 2), (february, 7, 7, 1), (None, 9, 9, 2)
    }  # fmt: skip
