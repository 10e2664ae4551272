"""Write the day of a run into its note, so that the grid and the header of the run show it.

Airflow names a scheduled run after the end of its interval, so that its name shows another day than its data. The
scheduler calls this listener when it starts or ends a run, with the run in its own database session, and stores the
note with the run's state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.listeners import hookimpl
from airflow.sdk.exceptions import AirflowFailException

from lakehouse_airflow.intervals import RunDates, interval_of

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

_LOADING = ("TableWriteOperator", "QualityGateOperator")
_LONGEST = 1000
"""The longest note that Airflow's database stores."""


@hookimpl
def on_dag_run_running(dag_run: DagRun, msg: str) -> None:
    """Put the interval of a run that loads tables before its note; a run whose dates determine none keeps its note."""
    _write_day(dag_run)


@hookimpl
def on_dag_run_success(dag_run: DagRun, msg: str) -> None:
    """Put the interval before the note of a run that did not get it at its start."""
    _write_day(dag_run)


@hookimpl
def on_dag_run_failed(dag_run: DagRun, msg: str) -> None:
    """Put the interval before the note of a run that did not get it at its start."""
    _write_day(dag_run)


def _write_day(dag_run: DagRun) -> None:
    # Imported here: every process of Airflow loads this module.
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance
    from sqlalchemy import select
    from sqlalchemy.orm import object_session

    session = object_session(dag_run)
    task = select(TaskInstance.task_id).filter_by(dag_id=dag_run.dag_id, run_id=dag_run.run_id)
    if session is None or not session.scalar(task.where(TaskInstance.operator.in_(_LOADING)).limit(1)):
        return
    try:
        day = f"Data of {interval_of(dates_of(dag_run)).label} (UTC)"
    except AirflowFailException:
        return  # The tasks of the run fail with this error, and their logs say what to type.
    # Another first note of this run would be an error that ends the scheduler, and waiting for it a deadlock. So if
    # somebody is writing one, the day has to wait for the end of the run, which
    # may come with another note that is still to be flushed.
    lock = select(DagRun.id).where(DagRun.id == dag_run.id).with_for_update(skip_locked=True)
    if session.scalar(lock) is None:
        return
    session.flush()
    session.refresh(dag_run, ["dag_run_note"])
    note = dag_run.note or ""
    # A cleared run starts again, and has the note of its first start.
    if not note.startswith(day):
        dag_run.note = f"{day}\n{note}".strip()[:_LONGEST]


def dates_of(dag_run: DagRun) -> RunDates:
    """Return the dates of a run in Airflow's database, whose session must be open."""
    return RunDates(
        run_type=str(getattr(dag_run.run_type, "value", dag_run.run_type)),
        logical_date=dag_run.logical_date,
        start=dag_run.data_interval_start,
        end=dag_run.data_interval_end,
        day=(dag_run.conf or {}).get("day"),
        events=tuple(event.extra for event in dag_run.consumed_asset_events),
    )
