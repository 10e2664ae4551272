"""The note of a run has the day of its data, as Airflow's scheduler stores it when it starts the run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from airflow.models.dagbag import DBDagBag
from airflow.models.dagrun import DagRun
from airflow.timetables.base import DataInterval
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from sqlalchemy.orm import Session

MIDNIGHT = datetime(2013, 1, 5, tzinfo=UTC)
_NUMBERS = count(1)


def started(
    database: Session, run_type: DagRunType, conf: dict[str, Any], dag_id: str = "flights", note: str | None = None
) -> DagRun:
    """Return a run that the scheduler has just started; each has another day."""
    dag = DBDagBag().get_latest_version_of_dag(dag_id, session=database)
    number = next(_NUMBERS)
    midnight = MIDNIGHT + timedelta(days=number)
    begin = midnight - timedelta(days=run_type is DagRunType.MANUAL)
    run = dag.create_dagrun(
        run_id=f"run_{number}",
        logical_date=midnight,
        # Airflow gives a manual run the day before its date.
        data_interval=DataInterval(begin, begin + timedelta(days=1)),
        run_after=midnight + timedelta(days=1),
        conf=conf,
        run_type=run_type,
        triggered_by=DagRunTriggeredByType.TEST,
        state=DagRunState.QUEUED,
        session=database,
    )
    if note is not None:
        run.note = note
    database.commit()
    return start(run, database)


def day_of(run: DagRun) -> str:
    return f"Data of {run.data_interval_start:%Y-%m-%d} (UTC)"


def start(run: DagRun, database: Session) -> DagRun:
    """Do what the scheduler does with a queued run."""
    run.state = DagRunState.RUNNING
    run.notify_dagrun_state_changed(msg="started")
    database.commit()
    database.expire_all()
    return run


@pytest.mark.parametrize("run_type", [DagRunType.SCHEDULED, DagRunType.BACKFILL_JOB, DagRunType.MANUAL])
def test_the_note_says_of_which_day_the_data_is(database: Session, run_type: DagRunType) -> None:
    run = started(database, run_type, {"day": "2013-02-03"} if run_type is DagRunType.MANUAL else {})
    assert run.note == ("Data of 2013-02-03 (UTC)" if run_type is DagRunType.MANUAL else day_of(run))


def test_a_note_of_a_person_stays_below_the_day_however_often_the_run_starts(database: Session) -> None:
    run = started(database, DagRunType.SCHEDULED, {}, note="after the outage")
    run.state = DagRunState.QUEUED
    assert start(run, database).note == f"{day_of(run)}\nafter the outage"


def test_a_note_written_with_the_end_of_a_run_stays_below_the_day(database: Session) -> None:
    run = started(database, DagRunType.SCHEDULED, {})
    run.dag_run_note = None
    database.commit()
    run.note = "not run"
    run.state = DagRunState.SUCCESS
    run.notify_dagrun_state_changed(msg="success")
    database.commit()
    database.expire_all()
    assert run.note == f"{day_of(run)}\nnot run"


def test_the_longest_note_that_airflow_stores_is_no_error(database: Session) -> None:
    run = started(database, DagRunType.SCHEDULED, {}, note="x" * 1000)
    assert (len(run.note), run.note[:24]) == (1000, day_of(run))


@pytest.mark.parametrize("dag_id", ["flights", "table_maintenance"])
def test_a_run_of_no_day_has_no_note(database: Session, dag_id: str) -> None:
    assert started(database, DagRunType.MANUAL, {}, dag_id).note is None
