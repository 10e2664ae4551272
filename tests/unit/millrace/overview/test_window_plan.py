"""The plan of a window: whole days until the time is over, what past batches tell, and who is behind."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from millrace.clock import utc_now
from millrace.contracts.spec.table_spec import SilverSpec
from millrace.control.ledger.states.table_state import AllStates
from millrace.control.ops_tables import OpsTables
from millrace.control.planning.planner import Planner
from millrace.control.planning.run_plans import PlanKind, RunPlanner
from millrace.errors import NotReadyError
from millrace.overview.tables.overview_from_state import overview_of
from millrace.overview.tables.table_overview import Questions, TableOverview
from millrace.overview.window_plan import WindowPlan, past_batches, plan_window, tables_behind
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.support.documents.specs import bronze_spec, catalog_of, gold_spec, silver_spec
from tests.support.ledger.delta_tables import day, load_batch
from tests.support.silver.known_customers import CUSTOMERS, ORDERS, shop_documents

BRONZE, SILVER, GOLD = bronze_spec(), silver_spec(), gold_spec()
DAYS = [day(number) for number in (1, 2, 3)]


def plan(folder: Path, seconds: float) -> WindowPlan:
    """Plan three days of three tables; each look at the clock takes a second."""
    settings = Settings(root=folder / "root", landing=str(folder), tables=folder)
    planner = RunPlanner(Planner(catalog_of(BRONZE, SILVER, GOLD), settings))
    return plan_window(planner, [BRONZE, SILVER, GOLD], DAYS, seconds, count().__next__)


def test_only_whole_days_count_when_the_time_is_over(tmp_path: Path) -> None:
    part = plan(tmp_path, 4)
    assert list(part.intervals) == DAYS[:1]
    assert part.unplanned == DAYS[1:]
    assert [(work.table, work.kinds) for work in part.tables][:1] == [(BRONZE.table, {PlanKind.NOT_READY: 1})]
    assert list(plan(tmp_path, 99).intervals) == DAYS
    with pytest.raises(NotReadyError, match="2013-01-01 was not planned in 2 seconds"):
        plan(tmp_path, 2)


def test_the_time_is_the_median_of_past_loads_and_rows_are_those_of_the_day(tmp_path: Path) -> None:
    for rows in (5, 7):
        load_batch(tmp_path, BRONZE, rows=rows)
    ops = OpsTables(LakehousePaths(tmp_path))
    table = overview_of(BRONZE, AllStates(ops.paths).read_one(BRONZE.table), Questions(), (), utc_now())
    past = past_batches(ops.ledger, table, [day(2).start, day(3).start])
    assert past.count == 2
    assert 0 < past.seconds < 60
    assert {start: (loaded.batches, loaded.rows) for start, loaded in past.loaded.items()} == {day(2).start: (1, 7)}
    assert past_batches(ops.ledger, TableOverview(SILVER), [day(2).start]).seconds is None


def test_tables_of_other_domains_that_read_a_changed_table_are_behind() -> None:
    tables = {spec.table: TableOverview(spec) for spec in (GOLD, SILVER, BRONZE)}
    behind = tables_behind([BRONZE.table], [BRONZE.table], tables)
    assert [(each.table.table, each.sources) for each in behind] == [
        (SILVER.table, (BRONZE.table,)),
        (GOLD.table, (SILVER.table,)),
    ]
    assert tables_behind([SILVER.table], [SILVER.table, GOLD.table], tables) == []
    assert tables_behind([], [], tables) == []
    *_, customers, _, orders = [{**document, "domain": "shop"} for document in shop_documents()]
    waiting = {spec.table: TableOverview(spec) for spec in map(SilverSpec.model_validate, (customers, orders))}
    behind = tables_behind([CUSTOMERS], [CUSTOMERS], waiting)
    assert [(each.table.table, each.sources) for each in behind] == [(ORDERS, (CUSTOMERS,))], "its rows wait for it"
