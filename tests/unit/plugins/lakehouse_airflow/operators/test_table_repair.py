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
from millrace.contracts.job.args import Job, JobArgs
from millrace.contracts.job.requests import RepairRequest
from millrace.control.gates.gates import Gates
from millrace.control.log.delta_log import latest_version
from millrace.control.ops_tables import OpsTables
from millrace.paths import LakehousePaths
from tests.support.ledger.delta_tables import judge, load_batch
from tests.unit.plugins.lakehouse_airflow.operators.conftest import House, Record

ORDERS = "bronze.orders"
FORM = {"table": ORDERS, "action": "restore", "to": "1", "where": None, "source": None, "no_reload": False}
FORM = {**FORM, "why": "net prices"}


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
    return {**context, "params": FORM}


def test_a_table_is_restored_as_it_was_shown_in_the_name_of_who_approved(
    house: House, asked: dict[str, Any], record: Record
) -> None:
    approval = RepairApprovalOperator(task_id="approve")
    subject, body = approval.question(asked)
    assert subject == f"Restore {ORDERS} to version 1?"
    assert "`Rows: 5 now, 2 after: 0 inserted, 0 updated, 3 deleted`" in body
    assert "Why, says ann: `net prices`" in body
    record(asked, approval, by="eve")
    restore = TableRepairOperator(task_id="repair")
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
    restore, approval = TableRepairOperator(task_id="repair"), RepairApprovalOperator(task_id="approve")
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


PLAN = """
report(Outcome.NO_OP, "would delete the rows where n = 1",
       details={"id": "ab12", "found": {"samples": [{"n": "1"}]}})
"""
DONE = 'report(Outcome.COMMITTED, "2 rows deleted", batch_seq=4, version=4, certified_version=4)'


@pytest.mark.usefixtures("warm_server")
def test_rows_are_deleted_as_the_dry_run_has_shown(house: House, asked: dict[str, Any], record: Record) -> None:
    asked["params"] = {**FORM, "action": "delete", "to": None, "where": "n = 1"}
    house.job(PLAN, Job.TABLE_REPAIR)
    dry_run, repair = (repair_task(is_dry_run=each) for each in (True, False))
    shown = dry_run.execute(asked)
    asked["ti"].xcom_pull = lambda task_ids: {"dry_run": shown}[task_ids]
    approval = RepairApprovalOperator(task_id="approve")
    subject, body = approval.question(asked)
    assert subject == f"Delete rows of {ORDERS}?"
    assert ("would delete the rows where n = 1" in body, "such as" in body, "`ab12`" in body) == (True, False, True)
    with pytest.raises(AirflowFailException, match="Nobody approved this"):
        repair.execute(asked)
    record(asked, approval, by="eve")
    house.job(DONE, Job.TABLE_REPAIR)
    assert repair.execute(asked)["summary"] == f"{ORDERS} version 4: rows deleted"
    file = JobArgs.from_argv(repair.application_args).request
    assert file is not None
    request = RepairRequest.load(file)
    assert request == RepairRequest(where="n = 1", plan="ab12", said_by="ann, approved by eve", why="net prices")
    asked["params"]["where"] = ""
    with pytest.raises(AirflowFailException, match="does not say what to delete"):
        dry_run.execute(asked)


def repair_task(*, is_dry_run: bool) -> TableRepairOperator:
    task = TableRepairOperator(task_id="repair", is_dry_run=is_dry_run)
    task.table = ORDERS
    return task
