"""The scheduler and a user write the note of a run at the same time, in the PostgreSQL of the local stack."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

import pytest
from airflow.models import import_all_models
from airflow.models.base import Base
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunType
from sqlalchemy import Engine, create_engine, insert, text
from sqlalchemy.orm import Session

from embedded.servers.postgres import Postgres
from lakehouse_airflow.ui.run_notes import on_dag_run_running, on_dag_run_success
from tests.support.airflow.homes import new_home

MIDNIGHT = datetime(2013, 1, 5, tzinfo=UTC)


@pytest.fixture(scope="module")
def airflow_on_postgres() -> Iterator[Engine]:
    """An empty database of Airflow."""
    import_all_models()
    with new_home() as home:
        server = Postgres(home)
        server.start()
        engine = create_engine(server.url)
        Base.metadata.create_all(engine)
        yield engine
        engine.dispose()
        server.stop()


def test_the_scheduler_does_not_wait_for_a_user_who_writes_the_note_and_adds_the_day_at_the_end(
    airflow_on_postgres: Engine,
) -> None:
    session = partial(Session, airflow_on_postgres, autoflush=False)  # As Airflow's own.
    with session() as user, session() as scheduler:
        scheduler.execute(text("SET lock_timeout = '1s'"))
        run_id = _queued_run(user)
        run = scheduler.get_one(DagRun, run_id)
        assert run.dag_run_note is None

        user.get_one(DagRun, run_id).note = "after the outage"
        user.flush()
        run.state = DagRunState.RUNNING
        on_dag_run_running(run, "started")
        scheduler.commit()
        user.commit()
        assert run.note == "after the outage"

        run.state = DagRunState.SUCCESS
        on_dag_run_success(run, "success")
        scheduler.commit()
        assert run.note == "Data of 2013-01-05 (UTC)\nafter the outage"


def _queued_run(session: Session) -> int:
    """Store a run of a task that loads a table; return its id."""
    run = DagRun("shop", run_id="monday", run_type=DagRunType.SCHEDULED, state=DagRunState.QUEUED)
    run.logical_date = run.data_interval_start = MIDNIGHT
    run.data_interval_end = run.run_after = MIDNIGHT.replace(day=6)
    session.add(run)
    session.flush()
    names = {"dag_id": "shop", "run_id": "monday", "task_id": "load", "operator": "TableWriteOperator"}
    session.execute(insert(TaskInstance).values(**names, map_index=-1, pool="spark", pool_slots=1, try_number=0))
    session.commit()
    return run.id
