"""The DAG of an erasure: the question is the plan without a key, and only what a person has approved is done."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk.exceptions import AirflowFailException
from deltalake import write_deltalake

from lakehouse_airflow.operators.subject_erasure import ErasureApprovalOperator, SubjectErasureOperator
from millrace.contracts.job.args import Job, JobArgs
from millrace.control.ops_tables import OpsTables
from millrace.paths import LakehousePaths
from tests.support.documents.specs import bronze_document, write_specs
from tests.unit.plugins.lakehouse_airflow.operators.conftest import House, Record, driver_log
from tests.unit.plugins.lakehouse_airflow.operators.test_table_repair import Events

ORDERS, KEY = "bronze.orders", "customer-0017"
DELETES = """
import json
from deltalake import DeltaTable
request = json.loads(args.request.read_text())
DeltaTable(str(args.root) + "/bronze/orders").delete("order_id = '1'")
assert args.request.stat().st_mode & 0o777 == 0o600
report(Outcome.COMMITTED, f"{len(request['keys'])} erased", details={"tables": {"bronze.orders": 1}})
"""


@pytest.fixture
def asked(house: House, run_of: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """The context of a run that ann has triggered to erase the buyer of one of two orders."""
    columns = {"order_id": {"type": "string"}, "buyer": {"type": "string"}}
    write_specs(house.folder / "tables", bronze_document(columns=columns, subject_keys={"buyer": "customer"}))
    rows = pa.table({"order_id": ["1", "2"], "buyer": [KEY, "customer-0018"]})
    write_deltalake(str(house.root / "bronze" / "orders"), rows)
    (house.folder / "landing/orders").mkdir(parents=True)
    (house.folder / "keys").write_text(f"{KEY}\n")
    context = run_of(run_type="manual", logical_date=None, start=None, end=None, events=defaultdict(Events))
    context["dag_run"].triggering_user_name = "ann"
    form = {"kind": "customer", "request": "DSR-1", "subjects": str(house.folder / "keys"), "now": False}
    return {**context, "params": {**form, "why": "asked for it"}}


@pytest.mark.usefixtures("warm_server")
def test_what_a_person_has_approved_is_done_once_and_nothing_of_it_names_the_person(
    house: House, asked: dict[str, Any], record: Record
) -> None:
    house.job(DELETES, Job.SUBJECT_ERASURE)
    approval = ErasureApprovalOperator(task_id="approve")
    subject, body = approval.question(asked)
    assert subject == "Erase the subjects of DSR-1?"
    assert "bronze.orders, newest version: 1 row: its rows are deleted" in body
    record(asked, approval, by="eve")
    task = SubjectErasureOperator(task_id="erase")
    result = task.execute(asked)
    assert OpsTables(LakehousePaths(house.root)).erasures.all()[0].said_by == "ann, approved by eve"
    arguments = JobArgs.from_argv(task.application_args)
    assert arguments.request
    assert not arguments.request.exists(), "the keys are gone with the job"
    [(asset, _)] = asked["outlet_events"].popitem()[1].added
    assert asset.name == ORDERS
    shown = (subject, body, json.dumps(result), " ".join(task.application_args), driver_log(house))
    assert not any(KEY in text for text in shown)
    task.execute(asked)
    assert len(OpsTables(LakehousePaths(house.root)).erasures.all()) == 1, "a cleared task goes on with the same one"


def test_nothing_is_erased_that_nobody_was_shown(house: House, asked: dict[str, Any], record: Record) -> None:
    task, approval = SubjectErasureOperator(task_id="erase"), ErasureApprovalOperator(task_id="approve")
    with pytest.raises(AirflowFailException, match="Nobody approved this"):
        task.execute(asked)
    record(asked, approval, by="eve")
    write_deltalake(str(house.root / "bronze" / "orders"), pa.table({"order_id": ["3"], "buyer": [KEY]}), mode="append")
    with pytest.raises(AirflowFailException, match="eve approved something else"):
        task.execute(asked)
    asked["params"]["subjects"] = str(Path("/nowhere/keys"))
    with pytest.raises(AirflowFailException, match="cannot be read by this worker"):
        approval.question(asked)
