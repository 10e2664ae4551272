"""Gold tables that read gold tables, on real Delta: what is certified is read, and only what changed is computed."""

from __future__ import annotations

from datetime import date

from millrace.catalog import load_catalog
from millrace.control.planning.planner import Planner
from millrace.errors import Outcome
from millrace.settings import Settings
from tests.support.documents.specs import gold_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order
from tests.support.ledger.delta_tables import day

SILVER, DAILY, MONTHLY = "silver.orders", "gold.revenue_daily", "gold.revenue_monthly"
MONTHLY_DOCUMENT = gold_document(
    MONTHLY,
    sources={"d": {"table": DAILY}},
    refresh_by="month",
    refresh_from={"d": "trunc(day, 'MM')"},
    group_by={"month": "trunc(d.day, 'MM')"},
    measures={"days": "count(*)", "orders": "sum(d.orders)", "revenue": "sum(d.revenue)"},
)


def test_only_groups_of_certified_changes_are_computed(lakehouse: Lakehouse) -> None:
    """The orders by day, and the days by month."""
    rule = {"expect_column_min_to_be_between": {"column": "revenue", "min_value": 0}, "action": "fail"}
    lakehouse.specs(gold_document(expectations=[rule]), MONTHLY_DOCUMENT)
    folder = lakehouse.folder
    settings = Settings(root=lakehouse.paths.root, landing=folder / "landing", tables=folder / "tables")
    monthly_spec = load_catalog(settings.tables).spec(MONTHLY)
    given(lakehouse, SILVER, [order(1, 5), {**order(2, 7), "day": "2013-02-01"}, {**order(4, 3), "day": None}], 1)
    lakehouse.run_all(1, DAILY, MONTHLY)
    assert lakehouse.run(MONTHLY, 1).outcome is Outcome.NO_OP

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
    assert lakehouse.run(MONTHLY, 3).rows.read == 2
    january, february = date(2013, 1, 1), date(2013, 2, 1)
    assert set(lakehouse.rows(MONTHLY, "month", "days", "orders", "revenue", "_batch_seq")) == {
        (january, 2, 2, 6, 2), (february, 1, 1, 7, 1), (None, 1, 2, 9, 2)
    }  # fmt: skip
