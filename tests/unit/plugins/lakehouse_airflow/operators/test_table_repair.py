"""The DAG of a repair: the question is the plan, and only what a person has approved is done, once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from lakehouse_airflow.assets import REPAIRED_TABLE, table_asset
from lakehouse_airflow.operators import table_repair
from lakehouse_airflow.operators.table_repair import RepairApprovalOperator, TableRepairOperator
from millrace.control.gates.gates import Gates
from millrace.control.log.delta_log import latest_version
from millrace.control.ops_tables import OpsTables
from millrace.paths import LakehousePaths
from tests.support.ledger.delta_tables import judge, load_batch
from tests.unit.plugins.lakehouse_airflow.operators.conftest import House, Record

ORDERS = "bronze.orders"


class Events:
    """The asset events of a task."""

    def __init__(self) -> None:
        self.added: list[tuple[Any, Any]] = []

    def add(self, asset: Any, extra: Any) -> None:
        self.added.append((asset, extra))


@pytest.fixture
def asked(house: House, run_of: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The context of a run that ann has triggered to restore the first of three versions of a table."""
    monkeypatch.setattr(table_repair, "is_announced", lambda *_: False)
    for rows in (2, 3):
        judge(house.root, house.spec, load_batch(house.root, house.spec, rows=rows).version)
    context = run_of(run_type="manual", logical_date=None, start=None, end=None, events=defaultdict(Events))
    context["dag_run"].triggering_user_name = "ann"
    return {**context, "params": {"table": ORDERS, "to": "1", "no_reload": False, "why": "net prices"}}


def test_a_table_is_restored_as_it_was_shown_in_the_name_of_who_approved(
    house: House, asked: dict[str, Any], record: Record
) -> None:
    approval = RepairApprovalOperator(task_id="approve")
    subject, body = approval.question(asked)
    assert subject == f"Restore {ORDERS} to version 1?"
    assert "`Rows: 5 now, 2 after: 0 inserted, 0 updated, 3 deleted`" in body
    assert "Why, says ann: `net prices`" in body
    record(asked, approval, by="eve")
    restore = TableRepairOperator(task_id="restore")
    assert restore.execute(asked)["summary"] == f"{ORDERS} version 3: restored to version 1"
    [(asset, extra)] = asked["outlet_events"][REPAIRED_TABLE].added
    assert (asset, extra["version"]) == (table_asset(ORDERS), 3)
    ops = OpsTables(LakehousePaths(house.root))
    repair = ops.repairs.of_run(ORDERS, asked["run_id"])
    assert repair is not None
    assert (repair.said_by, repair.why) == ("ann, approved by eve", "net prices")
    assert (restore.execute(asked)["version"], latest_version(ops.paths.table(ORDERS))) == (3, 3), "a cleared task"
    assert ops.gates.certified(ORDERS) == 3


def test_nothing_is_restored_that_nobody_was_shown(house: House, asked: dict[str, Any], record: Record) -> None:
    restore, approval = TableRepairOperator(task_id="restore"), RepairApprovalOperator(task_id="approve")
    with pytest.raises(AirflowFailException, match="Nobody approved this"):
        restore.execute(asked)
    record(asked, approval, by="eve")
    judge(house.root, house.spec, load_batch(house.root, house.spec).version)
    with pytest.raises(AirflowFailException, match="eve approved something else"):
        restore.execute(asked)
    assert Gates(LakehousePaths(house.root)).certified(ORDERS) == 3
    for to, cause in (("9", "has no version 9"), ("tomorrow", "neither a version nor a time")):
        asked["params"]["to"] = to
        with pytest.raises(AirflowFailException, match=cause):
            approval.question(asked)
