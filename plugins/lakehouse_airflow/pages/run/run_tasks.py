"""A run with its tasks and their results, from Airflow's database."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.models.dagrun import DagRun
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.taskinstance import TaskInstance
from airflow.models.taskinstancehistory import TaskInstanceHistory
from airflow.models.xcom import XComModel
from airflow.sdk.exceptions import AirflowFailException
from pydantic import ValidationError
from sqlalchemy import Text, cast, select

from lakehouse_airflow.intervals import interval_of
from lakehouse_airflow.ui.links import CHECKED_KEY, FAILED_KEY
from lakehouse_airflow.ui.run_notes import dates_of
from millrace.contracts.interval import Interval
from millrace.contracts.job.args import CheckedVersion
from millrace.contracts.job.task_result import TaskResult
from millrace.contracts.spec.values import TABLE
from millrace.overview.runs.run import Run, RunTask, Work

_RETURN_KEY = "return_value"
"""Airflow's key of the XCom with what a task has returned."""

_WORK = {
    "LandingSensor": Work.FILES,
    "TableWriteOperator": Work.WRITE,
    "QualityGateOperator": Work.GATE,
    "QuarantineReplayOperator": Work.REPLAY,
    "TableRebuildOperator": Work.REBUILD,
    **dict.fromkeys(("TableMaintenanceOperator", "PlannedMaintenanceOperator"), Work.MAINTENANCE),
    **dict.fromkeys(
        (
            *("OverrideApprovalOperator", "DeleteApprovalOperator", "RebuildApprovalOperator", "FixApprovalOperator"),
            *("GateOverrideOperator", "AllowDeletesOperator", "RunWaitingTaskOperator"),
            *("OpenQuestionsOperator", "ColumnApprovalOperator"),
        ),
        Work.APPROVAL,
    ),
}
"""The name of an operator, as Airflow stores it -> what its tasks do."""

_SUFFIXES = (".files", "_gate")
"""The tasks of the factory are named after their table, with one of these at the end."""

_OF_FORM = (Work.REPLAY, Work.REBUILD, Work.APPROVAL)
"""Tasks about the table that the form of the run names."""


class _Place(NamedTuple):
    """A task instance within its run."""

    task_id: str
    map_index: int


class _Left(NamedTuple):
    """What the tasks of a run have left: their results, the versions that gates have decided about, and answers."""

    results: Mapping[_Place, TaskResult]
    checked: Mapping[_Place, CheckedVersion]
    answers: Mapping[_Place, str]


def read_run(session: SessionDep, dag_id: str, run_id: str) -> Run | None:
    """Read a run with its tasks; None if there is no such run."""
    run = session.scalar(select(DagRun).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id))
    if run is None:
        return None
    form = run.conf or {}
    tasks = list(_tasks(session, dag_id, run_id, str(form.get("table") or "")))
    return Run(
        dag_id,
        run_id,
        state=str(run.state or ""),
        kind=str(getattr(run.run_type, "value", run.run_type)),
        created=run.created_at or run.start_date,
        interval=_interval(run) if any(task.work is Work.WRITE for task in tasks) else None,
        started=run.start_date,
        ended=run.end_date,
        is_dry_run=any(task.work is Work.REPLAY for task in tasks) and bool(form.get("dry_run", True)),
        form=form,
        occupied=dates_of(run).occupied,
        tasks=_with_rendered_tables(session, tasks),
    )


def _interval(run: DagRun) -> Interval | None:
    try:
        return interval_of(dates_of(run), may_span=True)
    except AirflowFailException:
        return None


def _tasks(session: SessionDep, dag_id: str, run_id: str, of_form: str) -> Iterator[RunTask]:
    ti = TaskInstance
    names = ("task_id", "task_display_name", "map_index", "state", "operator", "try_number", "rendered_map_index")
    columns = [getattr(ti, name) for name in names]
    times = (ti.scheduled_dttm, ti.queued_dttm, ti.start_date, ti.end_date)
    rows = session.execute(select(*columns, *times).where(ti.dag_id == dag_id, ti.run_id == run_id)).all()
    left = _left(session, dag_id, run_id)
    earlier = _earlier_seconds(session, dag_id, run_id, {row.task_id for row in rows if row.try_number > 1})
    for row in rows:
        place = _Place(row.task_id, row.map_index)
        result, checked = left.results.get(place), left.checked.get(place)
        work = _WORK.get(row.operator or "") or (Work.WRITE if result and result.table else None)
        table = (result.table if result else "") or (checked.table if checked else "")
        if not table and work:
            table = (
                of_form
                if work in _OF_FORM
                else _table_of_name((row.rendered_map_index or row.task_id).partition(":")[0])
            )
        yield RunTask(
            dag_id,
            run_id,
            *place,
            state=row.state or "",
            work=work,
            table=table,
            tries=row.try_number,
            asked_at=row.scheduled_dttm or row.queued_dttm,
            started=row.start_date,
            ended=row.end_date,
            earlier_s=earlier.get(place, 0.0),
            result=result,
            checked=checked.version if checked else None,
            answer=left.answers.get(place, ""),
            name=row.task_display_name,
        )


def _left(session: SessionDep, dag_id: str, run_id: str) -> _Left:
    """Return what the tasks of a run have left in XComs; what is no result of Millrace is left out."""
    keys = (_RETURN_KEY, FAILED_KEY, CHECKED_KEY)
    of_run = XComModel.get_many(run_id=run_id, dag_ids=dag_id).where(XComModel.key.in_(keys))
    # As text, which is parsed and checked at once: a run has thousands of them.
    columns = (XComModel.task_id, XComModel.map_index, XComModel.key, cast(XComModel.value, Text))
    results: dict[_Place, TaskResult] = {}
    checked: dict[_Place, CheckedVersion] = {}
    answers: dict[_Place, str] = {}
    for task_id, map_index, key, stored in session.execute(of_run.with_only_columns(*columns)):
        place, value = _Place(task_id, map_index), stored or "null"
        if value.startswith('"'):  # what Airflow's own processes set is JSON within a JSON text
            value = json.loads(value)
        with suppress(ValidationError):
            if key == CHECKED_KEY:
                checked[place] = CheckedVersion.model_validate_json(value)
            elif key == _RETURN_KEY and value.startswith("{") and '"chosen_options":' in value:
                answers[place] = _answer(json.loads(value))
            else:
                results[place] = TaskResult.model_validate_json(value)
    return _Left(results, checked, answers)


def _answer(returned: Mapping[str, Any]) -> str:
    """Return what a person has answered, from what Airflow's operators that ask people return.

    >>> _answer({"chosen_options": ["Reject"], "responded_by_user": {"id": "7", "name": "ann"}})
    'Reject by ann'
    """
    user = returned.get("responded_by_user") or {}
    return f"{', '.join(returned['chosen_options'])} by {user.get('name', 'nobody')}"


def _earlier_seconds(session: SessionDep, dag_id: str, run_id: str, retried: Collection[str]) -> dict[_Place, float]:
    """Return the seconds that the earlier tries of some tasks took."""
    if not retried:
        return {}
    tih = TaskInstanceHistory
    of_tasks = (tih.dag_id == dag_id, tih.run_id == run_id, tih.task_id.in_(retried))
    seconds: dict[_Place, float] = {}
    for row in session.execute(select(tih.task_id, tih.map_index, tih.start_date, tih.end_date).where(*of_tasks)):
        if row.start_date and row.end_date:
            place = _Place(row.task_id, row.map_index)
            seconds[place] = seconds.get(place, 0.0) + (row.end_date - row.start_date).total_seconds()
    return seconds


def _table_of_name(task_id: str) -> str:
    """Return the table after which a task of the factory is named; empty for another name.

    >>> _table_of_name("silver.flights_gate"), _table_of_name("silver.flights"), _table_of_name("load.write")
    ('silver.flights', 'silver.flights', '')
    """
    table = next((task_id.removesuffix(end) for end in _SUFFIXES if task_id.endswith(end)), task_id)
    return table if TABLE.fullmatch(table) else ""


def _with_rendered_tables(session: SessionDep, tasks: list[RunTask]) -> list[RunTask]:
    """Return the tasks, those with another name with the table that Airflow has rendered when they began."""
    nameless = {task.task_id for task in tasks if task.work and not task.table and task.started}
    if not nameless:
        return tasks
    rtif = RenderedTaskInstanceFields
    of_tasks = (rtif.dag_id == tasks[0].dag_id, rtif.run_id == tasks[0].run_id, rtif.task_id.in_(nameless))
    query = select(rtif.task_id, rtif.map_index, rtif.rendered_fields).where(*of_tasks)
    tables = {_Place(row.task_id, row.map_index): _table_in(row.rendered_fields) for row in session.execute(query)}
    return [
        task if task.table else replace(task, table=tables.get(_Place(task.task_id, task.map_index), ""))
        for task in tasks
    ]


def _table_in(fields: Any) -> str:
    return str(fields.get("table") or "") if isinstance(fields, Mapping) else ""
