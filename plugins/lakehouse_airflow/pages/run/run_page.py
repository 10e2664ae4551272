"""The page of a run: what did this run do, table by table, and what is to be done next?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial
from itertools import groupby
from typing import Any

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import HTTPException, Request
from fastapi.responses import HTMLResponse
from starlette import status

from lakehouse_airflow.pages.airflow_dags import where_to_act
from lakehouse_airflow.pages.failed_tasks import items_for
from lakehouse_airflow.pages.paths import APPROVALS
from lakehouse_airflow.pages.reader import lakehouse
from lakehouse_airflow.pages.rendering import page
from lakehouse_airflow.pages.run import bars
from lakehouse_airflow.pages.run.run_tasks import read_run
from lakehouse_airflow.ui.links import waiting_text
from lakehouse_airflow.ui.rights import may_see_rows
from millrace.clock import utc_now
from millrace.contracts.job.findings import MALFORMED
from millrace.contracts.job.report import RowCounts, total
from millrace.contracts.spec.values import layer_order
from millrace.control.ledger.states.recent_batches import BatchKind
from millrace.errors import MillraceError
from millrace.overview.attention import Attention
from millrace.overview.lakehouse import no_failed_tasks
from millrace.overview.runs.run import Run, Work
from millrace.overview.runs.run_overview import answer, next_steps
from millrace.overview.runs.table_run import TableOutcome, TableRun, table_runs, with_history
from millrace.overview.runs.time_split import TimeSplit, add_up, time_split

_TABLES, _ITEMS, _FAILED = 20, 10, 20
"""The tables on one page, and the next steps and failed tasks above them."""

_FRAME = "frame"
"""The value in the address by which Airflow's tab asks for a page without a head of its own."""

_COLOURS = {
    **dict.fromkeys((TableOutcome.REFUSED, TableOutcome.FAILED), "refused"),
    **dict.fromkeys((TableOutcome.BLOCKED, TableOutcome.WAITS, TableOutcome.UNCHECKED), "unchecked"),
    TableOutcome.CERTIFIED_BY_HAND: "approval",
    **dict.fromkeys((TableOutcome.CERTIFIED, TableOutcome.MAINTAINED, TableOutcome.DECIDED), "certified"),
}
"""Outcome -> the class of its colour."""


@dataclass(frozen=True)
class _ShownRun:
    """The part of a run that a page shows.

    Attributes:
        tables: all tables of the run.
        part: those on this page, with what the ledger knows of them.
        problem: why the lakehouse cannot be read; empty if it was read.
    """

    tables: Sequence[TableRun]
    part: Sequence[TableRun]
    problem: str = ""


def run_page(
    dag_id: str, run_id: str, request: Request, user: GetUserDep, session: SessionDep, page_no: int = 1
) -> HTMLResponse:
    """Show what a run did; if the lakehouse cannot be read, what Airflow knows of it.

    Raises:
        HTTPException: 404 if there is no such run.
    """
    now = utc_now()
    run = read_run(session, dag_id, run_id)
    if run is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"the DAG {dag_id} has no run {run_id}")
    first = _TABLES * (max(page_no, 1) - 1)
    shown = _read(run, now, first)
    splits = {each.table: time_split(each.tasks, now) for each in shown.tables}
    layers = _layers(shown.tables, splits)
    of_earlier_tables = {
        task.label
        for each in shown.tables
        if each.is_of_earlier_table
        for task in each.failed
        # The files that bronze did not load then are of a day, which no later run loads.
        if each.layer != "bronze" or task.work is Work.GATE
    }
    steps, failed = _with_tasks(next_steps(shown.tables, now), shown.tables), run.failed
    return page(
        "run.html",
        run=run,
        took=run.took(now),
        answer=answer(run, shown.tables),
        problem=shown.problem,
        items=items_for(steps[:_ITEMS], request, user),
        where=where_to_act(session, steps[:_ITEMS]),
        more_items=max(len(steps) - _ITEMS, 0),
        is_done=bool(run.ended),
        has_replayed=any(batch.kind is BatchKind.REPLAY for each in shown.part for batch in each.batches),
        failed=failed[:_FAILED],
        has_open_failures=any(task.label not in of_earlier_tables for task in failed),
        more_failed=max(len(failed) - _FAILED, 0),
        layers=layers,
        longest_layer=max((sum(split.values()) for _, _, _, split in layers), default=0.0),
        tables=shown.part,
        refused=[(each, rows, not rows.reason.startswith(MALFORMED)) for each in shown.part for rows in each.refused],
        splits=splits,
        longest=max((sum(splits[each.table].values()) for each in shown.part), default=0.0),
        count=len(shown.tables),
        first=first,
        per_page=_TABLES,
        page_no=max(page_no, 1),
        query={_FRAME: "1"} if _FRAME in request.query_params else {},
        may_see=_rights(dag_id, request, user),
        bars=bars,
        colours=_COLOURS,
    )


def _read(run: Run, now: datetime, first: int) -> _ShownRun:
    """Read the tables of a run, and of those on the page what only the ledger knows."""
    if not run.own_tasks:
        return _ShownRun((), ())
    try:
        with lakehouse() as reader:
            tables = table_runs(run, {each.table: each for each in reader.read(now, no_failed_tasks)})
            with reader.ledger() as ops:
                part = [with_history(each, run, ops) for each in tables[first : first + _TABLES]]
        return _ShownRun([*tables[:first], *part, *tables[first + _TABLES :]], part)
    except MillraceError as error:
        tables = table_runs(run, {})
        return _ShownRun(tables, tables[first : first + _TABLES], str(error))


def _with_tasks(steps: Sequence[Attention], tables: Sequence[TableRun]) -> list[Attention]:
    """Return the steps; the form of an approval also gets the failed task, which then runs again."""
    failed = {each.table: each.failed[0] for each in tables if each.failed}
    return [
        replace(step, fields={**step.fields, "task": waiting_text(failed[step.table.table])})
        if step.action in APPROVALS
        else step
        for step in steps
    ]


def _layers(tables: Sequence[TableRun], splits: Mapping[str, TimeSplit]) -> list[tuple[str, int, RowCounts, TimeSplit]]:
    """Return (layer, number of tables, their rows, their time) for each layer of the run."""
    ascending = sorted(tables, key=lambda each: (layer_order(each.layer), each.layer))
    groups = ((layer, list(of_layer)) for layer, of_layer in groupby(ascending, lambda each: each.layer))
    return [
        (layer, len(group), total(each.rows for each in group), add_up(splits[each.table] for each in group))
        for layer, group in groups
    ]


def _rights(dag_id: str, request: Request, user: Any) -> Callable[[TableRun | None], bool]:
    """Return a function: whether the user may see values of rows of a table, or of what the DAG's tasks say."""
    of_domain = cache(partial(may_see_rows, request=request, user=user))

    def may_see(shown: TableRun | None) -> bool:
        domain = shown.overview.spec.domain if shown and shown.overview else dag_id
        return bool(of_domain(dag_id) and of_domain(domain or dag_id))

    return may_see
