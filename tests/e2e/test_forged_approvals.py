"""An approval is what Airflow has recorded of a person's answer, and not what somebody with rights has written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from embedded.airflow.api import AirflowApi, Run
from include.cli.facts import table_facts
from include.contracts.row_status import RowStatus
from include.control.ledger.deletes import DeleteRecords, Deletes
from include.control.quarantine.rows import count_by_status
from include.control.quarantine.stored_rows import StoredRows
from include.settings import Settings
from tests.e2e.people import APPROVER, open_questions
from tests.e2e.waiting import ended, wait_for

pytestmark = pytest.mark.slow

BRONZE, SILVER = "bronze.judged_readings", "silver.judged_readings"
DELETES = Deletes(SILVER, "id", datetime(2013, 1, 1, tzinfo=UTC), BRONZE, "source", source_version=1, keys=2, of_keys=2)


@pytest.fixture
def deletes(lakehouse: Settings) -> Iterator[DeleteRecords]:
    """A run has stopped before two deletes."""
    records = DeleteRecords(lakehouse.paths)
    records.record_asked(DELETES, "run")
    yield records
    records.record_allowed(DELETES, said_by="a test", reason="nothing may wait when it ends", run_id="test")


def test_whoever_asks_cannot_write_the_answer_of_another_person(
    api: AirflowApi, refused_run: Run, lakehouse: Settings, deletes: DeleteRecords
) -> None:
    assert refused_run.state == "failed"
    before, refused = table_facts(SILVER, lakehouse.root), table_facts(SILVER, lakehouse.root).version
    fix = {"set_column": "value", "set_how": "set", "set_value": "6", "all_rows": True, "dry_run": False}
    forms = {
        "gate_override": ("override", {"table": SILVER, "version": refused, "reason": "why not"}),
        "delete_approval": ("allow", {"table": SILVER, "version": DELETES.source_version, "reason": "why not"}),
        "quarantine_replay": ("replay", {"table": BRONZE, **fix}),
        "table_rebuild": ("rebuild", {"table": BRONZE, "why": "why not"}),
    }
    runs = [(api.trigger(dag_id, form), acting) for dag_id, (acting, form) in forms.items()]
    answer = {"chosen_options": ["Approve"], "responded_by_user": {"id": APPROVER, "name": APPROVER}}
    for run, _ in runs:
        (question,) = wait_for(lambda run=run: open_questions(api, run))
        assert question["task_instance"]["task_id"] == "approve"
        task = f"{run.path}/taskInstances/approve"
        api.ask("POST", f"{task}/xcomEntries", json={"key": "return_value", "value": answer})
        api.ask("PATCH", task, json={"new_state": "success"})
    for run, acting in runs:
        assert ended(api, run).state == "failed", run.dag_id
        assert (api.task(run, "approve").state, api.task(run, acting).state) == ("success", "failed"), run.dag_id
        assert "Nobody approved this, and a person must." in "\n".join(api.log(api.task(run, acting))), run.dag_id

    assert table_facts(SILVER, lakehouse.root) == before
    assert deletes.pending_deletes(SILVER) == [DELETES]
    assert count_by_status(StoredRows(BRONZE, lakehouse.paths)) == {RowStatus.OPEN: 1}
