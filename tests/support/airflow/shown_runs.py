"""Runs for the page of a run: they are put into Airflow's database as a scheduler and workers would have left them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
from airflow.models.dagbag import DBDagBag
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.timetables.base import DataInterval
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from sqlalchemy.orm import Session

DAY = datetime(2013, 1, 2, tzinfo=UTC)
_VALID = {"table": "bronze.weather", "why": "a test", "version": 0, "reason": "a test"}
"""What the forms of dags/ accept when a run is made: they know the tables of flights alone."""

START = datetime.now(UTC) - timedelta(minutes=10)

BUNDLE = "dags-folder"
"""Airflow's own name for the folder of DAG files."""

SHOP_DAGS = """
from datetime import UTC, datetime

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from lakehouse_airflow.assets import table_asset
from lakehouse_airflow.factory import build_domain_dag
from lakehouse_airflow.operators.quality_gate import QualityGateOperator

shop = build_domain_dag("shop", schedule="0 0 * * *", start_date=datetime(2013, 1, 1, tzinfo=UTC), owner="sales")
with DAG("mails", schedule=None) as mails:
    EmptyOperator(task_id="send")
with DAG("by_hand", schedule=None) as by_hand:
    QualityGateOperator(task_id="gate", table="bronze.bills", outlets=[table_asset("bronze.bills")])
"""
"""The DAG of the domain `shop` by the specs of the settings, one by hand, and one without tasks of Millrace."""


@dataclass(frozen=True)
class Ended:
    """How a task of a run is left.

    Attributes:
        state: its state in Airflow's words.
        xcoms: key -> value of what it has left.
        tries: how many times it was started.
        seconds: when it began and ended, in seconds after the start of the run; the end only if it has one.
    """

    state: str
    xcoms: Mapping[str, Any]
    tries: int = 1
    seconds: tuple[int, ...] = (4, 10)


def add_dags(database: Session, folder: Path, text: str) -> None:
    """Add the DAGs of a file."""
    (folder / "dags.py").write_text(text)
    bag = DagBag(dag_folder=str(folder), bundle_path=folder, bundle_name=BUNDLE)
    assert bag.import_errors == {}
    sync_bag_to_db(bag, BUNDLE, None, session=database)
    database.commit()


def add_run(
    database: Session,
    dag_id: str,
    run_id: str,
    tasks: Mapping[str, Ended],
    *,
    conf: Mapping[str, Any] | None = None,
    state: DagRunState = DagRunState.SUCCESS,
    kind: DagRunType = DagRunType.SCHEDULED,
    day: datetime = DAY,
) -> DagRun:
    """Add a run whose other tasks were not scheduled yet."""
    dag = DBDagBag().get_latest_version_of_dag(dag_id, session=database)
    run = dag.create_dagrun(
        run_id=run_id,
        logical_date=None if kind is DagRunType.MANUAL else day,
        data_interval=None if kind is DagRunType.MANUAL else DataInterval(day, day + timedelta(days=1)),
        run_after=day + timedelta(days=1),
        conf=_VALID if conf else {},
        run_type=kind,
        triggered_by=DagRunTriggeredByType.TEST,
        state=state,
        session=database,
    )
    run.conf = dict(conf or {})
    run.start_date = run.created_at = START
    run.end_date = START + timedelta(seconds=80) if state in (DagRunState.SUCCESS, DagRunState.FAILED) else None
    by_name = {task.task_id: task for task in run.get_task_instances(session=database)}
    for task_id, ended in tasks.items():
        _end(by_name[task_id], ended, database)
    database.commit()
    return run


def _end(task: TaskInstance, ended: Ended, database: Session) -> None:
    begin, *end = (START + timedelta(seconds=each) for each in ended.seconds)
    task.state, task.try_number, task.scheduled_dttm = ended.state, ended.tries, START
    task.start_date, task.end_date = begin, end[0] if end else None
    for key, value in ended.xcoms.items():
        place = {"dag_id": task.dag_id, "task_id": task.task_id, "run_id": task.run_id}
        XComModel.set(key, value, **place, session=database)
