"""A table whose task has failed stands on top of the page Lakehouse, until somebody has dealt with the task."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from airflow.models.dagbag import DBDagBag
from airflow.models.dagrun import DagRun
from airflow.timetables.base import DataInterval
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from lakehouse_airflow.ui.links import lakehouse_path, table_path
from tests.support.airflow.logins import login
from tests.support.airflow.shown_page import Shown

DAY = datetime(2013, 3, 1, tzinfo=UTC)
NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def run(database: Session) -> DagRun:
    """A run of the flights."""
    dag = DBDagBag().get_latest_version_of_dag("flights", session=database)
    assert dag is not None
    run = dag.create_dagrun(
        run_id="scheduled__of_march",
        logical_date=DAY,
        data_interval=DataInterval(DAY, DAY + timedelta(days=1)),
        run_after=DAY + timedelta(days=1),
        run_type=DagRunType.SCHEDULED,
        triggered_by=DagRunTriggeredByType.TEST,
        state=DagRunState.FAILED,
        session=database,
    )
    database.commit()
    return run


def end_task(run: DagRun, database: Session, task_id: str, state: str, at: datetime = NOW) -> None:
    [task] = [task for task in run.get_task_instances(session=database) if task.task_id == task_id]
    task.state, task.end_date = state, at
    database.commit()


def show(server: TestClient) -> Shown:
    return Shown(server.get(lakehouse_path("tables"), headers=login(server, "ann")))


def words(page: Shown) -> str:
    return " ".join(page.texts)


def test_a_failed_task_is_named_with_a_link_until_it_is_dealt_with(
    server: TestClient, database: Session, run: DagRun
) -> None:
    end_task(run, database, "silver.weather_gate", "failed")
    end_task(run, database, "bronze.planes.files", "failed")
    page = show(server)
    assert "run failed" in page.row("silver.weather")
    assert "run failed" in page.row("bronze.planes")
    assert "the task silver.weather_gate failed in the run scheduled__of_march" in words(page)
    assert "/dags/flights/runs/scheduled__of_march/tasks/silver.weather_gate" in page.links
    assert "run failed" in words(Shown(server.get(table_path("silver.weather"), headers=login(server, "ann"))))
    end_task(run, database, "silver.weather_gate", "success")
    end_task(run, database, "bronze.planes.files", "failed", NOW - timedelta(days=8))
    assert "run failed" not in words(show(server))
