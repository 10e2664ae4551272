"""The tasks about tables that have failed, from Airflow's database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.models.dag import DagModel
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.taskinstance import TaskInstance
from sqlalchemy import and_, select

from include.clock import utc_now
from include.overview.tables.failed_task import FailedTask

OPERATORS = ("TableWriteOperator", "QualityGateOperator", "LandingSensor")
"""The operators whose tasks are about one table, in a DAG of the factory or in any other."""

_LATELY = timedelta(days=7)
"""A failure that nobody has looked at for longer is no news."""

_MOST = 2000
_SUFFIXES = ("", "_gate", ".files")
"""The tasks of the factory about a table are named after it, with one of these at the end."""


def failed_tasks(session: SessionDep, tables: Collection[str]) -> Mapping[str, Sequence[FailedTask]]:
    """Return table -> the tasks about it that have failed lately, the newest first.

    A task that was cleared, or marked as successful, has failed no more. The table is the rendered argument of the
    operator. A task that has failed before it was rendered is known by its name, if the factory has made it.
    """
    of_task = {f"{table}{suffix}": table for suffix in reversed(_SUFFIXES) for table in tables}
    known = set(tables)
    failed: dict[str, list[FailedTask]] = defaultdict(list)
    for row in session.execute(_QUERY.where(TaskInstance.end_date >= utc_now() - _LATELY)):
        table = row.table or of_task.get(row.task_id, "")
        # A gate of a table of another tool reads its spec elsewhere; a table of ours may have the same name.
        if table in known and not row.specs:
            failed[table].append(FailedTask(row.dag_id, row.run_id, row.task_id, row.map_index, row.end_date))
    return failed


_KEY = ("dag_id", "run_id", "task_id", "map_index")
_QUERY = (
    select(
        *(getattr(TaskInstance, name) for name in _KEY),
        TaskInstance.end_date,
        RenderedTaskInstanceFields.rendered_fields["table"].as_string().label("table"),
        RenderedTaskInstanceFields.rendered_fields["specs"].as_string().label("specs"),
    )
    .join(DagModel, and_(DagModel.dag_id == TaskInstance.dag_id, ~DagModel.is_stale))
    .outerjoin(
        RenderedTaskInstanceFields,
        and_(*(getattr(RenderedTaskInstanceFields, name) == getattr(TaskInstance, name) for name in _KEY)),
    )
    .where(TaskInstance.state == "failed", TaskInstance.operator.in_(OPERATORS))
    .order_by(TaskInstance.end_date.desc())
    .limit(_MOST)
)
