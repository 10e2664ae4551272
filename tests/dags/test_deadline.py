"""The notice of a late run, as the guide to the operators has it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import structlog
from airflow.models.dagbag import DBDagBag
from airflow.models.deadline import Deadline
from airflow.sdk.execution_time.callback_supervisor import execute_callback
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from sqlalchemy import select
from sqlalchemy.orm import Session

from include.settings import PROJECT
from tests.support.airflow.shown_runs import add_dags


@pytest.mark.usefixtures("shown_lakehouse")
def test_the_example_tells_of_a_late_run(database: Session, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    add_dags(database, tmp_path, (PROJECT / "docs" / "examples" / "shop.py").read_text())
    dag, now = DBDagBag().get_latest_version_of_dag("shop", session=database), datetime.now(UTC)
    run = dag.create_dagrun(
        run_id="late",
        run_after=now,
        run_type=DagRunType.MANUAL,
        triggered_by=DagRunTriggeredByType.TEST,
        state=DagRunState.QUEUED,
        session=database,
    )
    try:
        database.flush()
        [deadline] = database.scalars(select(Deadline).where(Deadline.dagrun_id == run.id))
        deadline.handle_miss(database)
        notice = deadline.callback.data
        ended = execute_callback(notice["path"], notice["kwargs"], "dags.py", tmp_path, structlog.get_logger())
        assert ended == (True, None)
        assert "late was to end by" in caplog.text
    finally:
        database.rollback()
