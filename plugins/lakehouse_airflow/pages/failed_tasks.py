"""The tasks about tables that have failed, from Airflow's database, and what a user may see of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import cache, partial
from typing import Any

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.models.dag import DagModel
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from fastapi import Request
from pydantic import ValidationError
from sqlalchemy import and_, select

from lakehouse_airflow.ui.links import FAILED_KEY
from lakehouse_airflow.ui.rights import may_see_rows
from millrace.clock import utc_now
from millrace.contracts.job.task_result import TaskResult
from millrace.errors import Outcome
from millrace.overview.attention import Attention
from millrace.overview.tables.failed_task import FailedTask

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
            place = (row.dag_id, row.run_id, row.task_id, row.map_index)
            failed[table].append(FailedTask(*place, row.end_date, _result(row), row.task_display_name))
    return failed


def _result(row: Any) -> TaskResult | None:
    """Return why a task has failed; None if it left nothing, or something else."""
    with suppress(ValidationError):
        return None if row.value is None else TaskResult.model_validate(XComModel.deserialize_value(row))
    return None


def items_for(items: Sequence[Attention], request: Request, user: Any) -> list[Attention]:
    """Return the items; what a failed task has said is left out for a user who may not see values of rows.

    What a task has said ends with the way out, which then stands there once; an unexpected error knows none.
    """
    may_see = cache(partial(may_see_rows, request=request, user=user))

    def shown(item: Attention) -> Attention:
        if not item.message:
            return item
        failed = item.table.failed[0]
        if not (may_see(failed.dag_id) and may_see(item.table.spec.domain or failed.dag_id)):
            return replace(item, message=())
        is_expected = failed.result is not None and failed.result.outcome is not Outcome.FAILED
        return replace(item, way_out="") if is_expected else item

    return [shown(item) for item in items]


_KEY = ("dag_id", "run_id", "task_id", "map_index")
_QUERY = (
    select(
        *(getattr(TaskInstance, name) for name in (*_KEY, "task_display_name")),
        TaskInstance.end_date,
        RenderedTaskInstanceFields.rendered_fields["table"].as_string().label("table"),
        RenderedTaskInstanceFields.rendered_fields["specs"].as_string().label("specs"),
        XComModel.value,
    )
    .join(DagModel, and_(DagModel.dag_id == TaskInstance.dag_id, ~DagModel.is_stale))
    .outerjoin(
        RenderedTaskInstanceFields,
        and_(*(getattr(RenderedTaskInstanceFields, name) == getattr(TaskInstance, name) for name in _KEY)),
    )
    .outerjoin(
        XComModel,
        and_(
            XComModel.key == FAILED_KEY,
            *(getattr(XComModel, name) == getattr(TaskInstance, name) for name in _KEY),
        ),
    )
    .where(TaskInstance.state == "failed", TaskInstance.operator.in_(OPERATORS))
    .order_by(TaskInstance.end_date.desc())
    .limit(_MOST)
)
