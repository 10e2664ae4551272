"""The tasks about tables that have failed, from Airflow's database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.models.taskinstance import TaskInstance
from sqlalchemy import select

from include.clock import utc_now
from include.overview.table_overview import FailedTask

_LATELY = timedelta(days=7)
"""A failure that nobody has looked at for longer is no news."""

_MOST = 2000
_SUFFIXES = ("", "_gate", ".files")
"""The tasks of the factory about a table are named after it, with one of these at the end."""


def failed_tasks(
    session: SessionDep, domains: Collection[str], tables: Collection[str]
) -> Mapping[str, Sequence[FailedTask]]:
    """Return table -> its tasks in the DAGs of domains that have failed lately, the newest first.

    A task that was cleared, or marked as successful, has failed no more.
    """
    of_task = {f"{table}{suffix}": table for suffix in reversed(_SUFFIXES) for table in tables}
    columns = (TaskInstance.dag_id, TaskInstance.run_id, TaskInstance.task_id, TaskInstance.map_index)
    query = (
        select(*columns, TaskInstance.end_date)
        .where(TaskInstance.state == "failed", TaskInstance.dag_id.in_(domains))
        .where(TaskInstance.end_date >= utc_now() - _LATELY)
        .order_by(TaskInstance.end_date.desc())
        .limit(_MOST)
    )
    failed: dict[str, list[FailedTask]] = defaultdict(list)
    for row in session.execute(query):
        if row.end_date and (table := of_task.get(row.task_id)):
            failed[table].append(FailedTask(row.dag_id, row.run_id, row.task_id, row.map_index, row.end_date))
    return failed
