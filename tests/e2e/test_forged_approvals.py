"""An approval is what Airflow has recorded of a person's answer, and not what somebody with rights has written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from embedded.airflow.api import AirflowApi, Run
from millrace.cli.facts import table_facts
from millrace.control.ledger.deletes import DeleteRecords, Deletes
from millrace.settings import Settings
from tests.e2e.people import forge_answer, was_refused

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
    old = Path(str(lakehouse.paths.table(BRONZE))) / "old.parquet"
    old.touch()
    os.utime(old, (0, 0))
    before, refused = table_facts(SILVER, lakehouse.root), table_facts(SILVER, lakehouse.root).version
    forms = {
        "gate_override": ("override", {"table": SILVER, "version": refused, "reason": "why not"}),
        "delete_approval": ("allow", {"table": SILVER, "version": DELETES.source_version, "reason": "why not"}),
        "table_rebuild": ("rebuild", {"table": BRONZE, "why": "why not"}),
        "table_vacuum": ("vacuum", {"table": BRONZE, "why": "why not"}),
        "table_repair": ("repair", {"table": SILVER, "to": str(before.certified_version), "why": "why not"}),
    }
    runs = [(api.trigger(dag_id, form), acting) for dag_id, (acting, form) in forms.items()]
    for run, _ in runs:
        forge_answer(api, run)
    assert [was_refused(api, run, acting) for run, acting in runs] == [True] * 5
    assert table_facts(SILVER, lakehouse.root) == before
    assert deletes.pending_deletes(SILVER) == [DELETES]
    assert old.exists()
