"""The notice of a late run, as the guide to the operators has it."""

from __future__ import annotations

import sys

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.models.deadline import Deadline
from sqlalchemy.orm import Session

from embedded.clone import CLONE
from tests.support.airflow.shown_runs import DAY, add_run

EXAMPLES = CLONE / "docs" / "examples"


@pytest.mark.usefixtures("shown_lakehouse")
def test_the_example_tells_of_a_late_run(database: Session, caplog: pytest.LogCaptureFixture) -> None:
    [dag] = DagBag(EXAMPLES / "shop.py", bundle_path=EXAMPLES, bundle_name="examples").dags.values()
    [alert] = dag.deadline
    run = add_run(database, "flights", "late", {})
    deadline = Deadline(DAY, alert.callback, run.id, None)
    try:
        database.add(deadline)
        database.flush()
        deadline.handle_miss(database)
        notice = deadline.callback.data
        module, _, function = notice["path"].rpartition(".")
        getattr(sys.modules[module], function)(**notice["kwargs"])
        assert "late was to end by 2013-01-02" in caplog.text
    finally:
        database.delete(deadline)
        database.delete(run)
        database.commit()
