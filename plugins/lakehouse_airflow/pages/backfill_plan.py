"""The page Backfill plan of a DAG: what would a run of this window do, and what follows from it?"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.models.dag import DagModel
from fastapi import HTTPException, Request
from fastapi.responses import HTMLResponse
from starlette import status

from lakehouse_airflow.pages.airflow_dags import current_dag, runs_of_days, waiting_dags
from lakehouse_airflow.pages.reader import lakehouse, lakehouse_to_plan
from lakehouse_airflow.pages.rendering import about, page
from lakehouse_airflow.pages.shown_days import backfill_runs, remarks, shown_days
from lakehouse_airflow.ui.rights import may_read_dag, may_see_rows
from millrace.catalog import Catalog
from millrace.clock import utc_now
from millrace.contracts.counted import counted
from millrace.contracts.interval import Interval, utc_days
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.planning.planner import Planner
from millrace.control.planning.run_plans import PlanKind, RunPlanner
from millrace.errors import MillraceError
from millrace.overview.lakehouse import LakehouseReader, no_failed_tasks
from millrace.overview.proposed_days import proposed_days
from millrace.overview.window_plan import WindowPlan, past_batches, plan_window, tables_behind
from millrace.settings import Settings

PLAN_SECONDS = 20.0
"""How long a page may plan: twice as long as brokers may take that do not answer."""

_EVERY_DAY = "0 0 * * *"


def backfill_plan_page(dag_id: str, request: Request, user: GetUserDep, session: SessionDep) -> HTMLResponse:
    """Show the form for a window and, once it states one, what its run would do.

    Raises:
        HTTPException: 404 if Airflow has no such DAG.
        NotReadyError: not even the first day could be planned in time.
    """
    dag, query, now = current_dag(session, dag_id), request.query_params, utc_now()
    if dag is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"Airflow has no DAG {dag_id}")
    with lakehouse() as reader:
        catalog = reader.catalog()
    is_framed = bool(query.get("framed"))
    if dag_id not in catalog.domains:
        return page("backfill_plan/no_tables.html", status.HTTP_404_NOT_FOUND, dag=dag, framed=is_framed)
    tables = [spec.table for spec in catalog.of_domain(dag_id)]
    shown: dict[str, Any] = {"dag": dag, "framed": is_framed, "tables": tables, "problem": ""}
    if not (query.get("first") or query.get("last")):
        return page("backfill_plan/page.html", **shown, window=_proposed(dag_id, now), is_planned=False)
    try:
        window = window_of(query, query.getlist("table"), tables)
    except WrongWindowError as error:
        shown |= {"window": _proposed(dag_id, now), "problem": str(error), "is_planned": False}
        return page("backfill_plan/page.html", status.HTTP_400_BAD_REQUEST, **shown)
    shown |= {"window": window, "is_planned": True, "sources": _sources(catalog, dag_id)}
    shown |= _planned(catalog, dag, window, now, may_see=may_see_rows(dag_id, request, user), session=session)
    shown["waiting"] = [each for each in shown["waiting"] if may_read_dag(each.dag_id, request, user)]
    return page("backfill_plan/page.html", **shown)


def _proposed(domain: str, now: datetime) -> Window:
    """Return the newest days with data, with which an empty form is filled in."""
    today = now.date()
    # The plan of the days says what is wrong with the landing.
    with suppress(MillraceError), lakehouse_to_plan() as reader:
        tables = [table for table in reader.read(now, no_failed_tasks) if table.spec.domain == domain]
        return Window(*proposed_days(tables, Settings().absolute().landing, today))
    return Window(today - timedelta(days=7), today - timedelta(days=1))


def _planned(
    catalog: Catalog, dag: DagModel, window: Window, now: datetime, *, may_see: bool, session: SessionDep
) -> dict[str, Any]:
    """Return what the template shows of a plan."""
    with lakehouse_to_plan() as reader:
        plan, readers = _plan(reader, catalog, dag.dag_id, window, now)
    runs = runs_of_days(session, dag.dag_id, [day.start for day in plan.intervals])
    days = shown_days(plan, runs, now, may_see_rows=may_see)
    backfill = backfill_runs(days)
    return {
        "plan": plan,
        "days": days,
        "answer": _answer(plan, sum(day.writes > 0 for day in days)),
        "plan_files": Settings().plan_files,
        "plan_seconds": PLAN_SECONDS,
        "kinds": [kind for kind in PlanKind if any(kind in work.kinds for work in plan.tables)],
        "readers": readers,
        "waiting": [each for each in waiting_dags(session, plan.changed) if each.dag_id != dag.dag_id],
        "backfill": backfill,
        "occupied": {day.day.label: runs[day.day.start].run_id for day in days if day.is_occupied},
        "remarks": list(remarks(days, may_see_rows=may_see)),
        "commands": _commands(dag.dag_id, window, backfill.behavior),
        "is_daily": dag.timetable_summary == _EVERY_DAY,
    }


def _plan(reader: LakehouseReader, catalog: Catalog, domain: str, window: Window, now: datetime) -> Any:
    """Return the plan with what is known of past batches, and the tables besides that would be behind."""
    settings, until = Settings().absolute(), time.monotonic() + PLAN_SECONDS

    def is_enough(files: int) -> bool:
        return files >= settings.plan_files or time.monotonic() > until

    specs = [spec for spec in catalog.of_domain(domain) if not window.tables or spec.table in window.tables]
    overviews = {each.table: each for each in reader.read(now, no_failed_tasks)}
    with reader.ledger() as ops:
        planner = Planner(catalog, settings, ops=ops, is_enough=is_enough)
        plan = plan_window(RunPlanner(planner, reprocess=window.reprocess), specs, window.days, PLAN_SECONDS)
        starts = [day.start for day in plan.intervals]
        past = {spec.table: past_batches(ops.ledger, overviews[spec.table], starts) for spec in specs}
    planned = {spec.table for spec in specs}
    return WindowPlan(plan.plans, plan.unplanned, past), tables_behind(plan.changed, planned, overviews)


def _sources(catalog: Catalog, domain: str) -> Mapping[str, str]:
    """Return table -> where its rows come from: the pattern of its landing files, its topics, or tables."""
    return {
        spec.table: spec.source.label if isinstance(spec, BronzeSpec) else ", ".join(dict.fromkeys(spec.source_tables))
        for spec in catalog.of_domain(domain)
    }


def _answer(plan: WindowPlan, days_that_write: int) -> str:
    """Return in one sentence what a run of the window would do."""
    work, days = plan.tables, len(plan.intervals)
    written = [each.table for each in work if each.batches]
    if not written and plan.partial:
        return "No landing file that was compared is new, and not all were compared."
    if not written:
        return f"A run of {'this day' if days == 1 else f'these {days} days'} would write nothing."
    files = sum(len(each.advice.files) - len(each.advice.failing_files) for each in plan.plans if each.advice)
    loads = f"load {'at least ' * bool(plan.partial)}{counted(files, 'landing file')} and " if files else ""
    lasts = f", in about {about(plan.seconds)}" if plan.seconds else ""
    tables, of_days = counted(len(written), "table"), f"{days_that_write} of {counted(days, 'day')}"
    return f"A run would {loads}write {tables} on {of_days}{lasts}."


def _commands(dag_id: str, window: Window, behavior: str) -> dict[str, str]:
    """Return what it is for -> a command that does the same as the window."""
    conf = ["--dag-run-conf", json.dumps({"reprocess": True})] if window.reprocess else []
    dates = ["--from-date", f"{window.first}T00:00Z", "--to-date", f"{window.last}T23:59Z"]
    backfill = ["airflow", "backfill", "create", "--dag-id", dag_id, *dates, "--reprocess-behavior", behavior, *conf]
    select = ["--domain", dag_id, "--interval", str(window.first), "--to", str(window.last)]
    select += [word for table in window.tables for word in ("--table", table)]
    select += ["--reprocess"] if window.reprocess else []
    return {
        "in Airflow": shlex.join(backfill),
        "without Airflow": shlex.join(["lakehouse", "run", *select]),
        "this plan": shlex.join(["lakehouse", "plan", *select]),
    }


MOST_DAYS = 92
_TYPED = 40
"""The most characters of a wrong text that a message repeats."""


class WrongWindowError(Exception):
    """The form states no window; the message says what to type instead."""


@dataclass(frozen=True)
class Window:
    """What a plan is for.

    Attributes:
        first: the first UTC day.
        last: the last UTC day.
        tables: the chosen tables; empty for all.
        reprocess: whether silver and gold read the rows of the days again.
    """

    first: date
    last: date
    tables: tuple[str, ...] = ()
    reprocess: bool = False

    @property
    def days(self) -> tuple[Interval, ...]:
        """Its days, in order of time."""
        return utc_days(self.first, self.last)


def window_of(query: Mapping[str, str], chosen: Sequence[str], tables: Collection[str]) -> Window:
    """Return the window that an address states.

    Args:
        query: the values in the address: `first`, `last` and `reprocess`.
        chosen: the tables in the address.
        tables: the tables of the DAG.

    Raises:
        WrongWindowError: it states none, or one that is too long for a page.
    """
    first, last = _day("From", query.get("first", "")), _day("To", query.get("last", ""))
    if last < first:
        raise WrongWindowError(f"To, {last}, is before From, {first}.")
    if (number := (last - first).days + 1) > MOST_DAYS:
        raise WrongWindowError(
            f"These are {number:,} days; a page plans at most {MOST_DAYS}. `lakehouse plan` has no limit."
        )
    if unknown := [table for table in chosen if table not in tables]:
        raise WrongWindowError(f"This DAG loads no table {unknown[0][:_TYPED]!r}.")
    window = Window(first, last, tuple(dict.fromkeys(chosen)), bool(query.get("reprocess")))
    try:
        _ = window.days
    except OverflowError:
        raise WrongWindowError(f"{last} is the last day of the calendar, and has no end.") from None
    return window


def _day(name: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise WrongWindowError(f"{name} is {text[:_TYPED]!r}, which is no day: write it as 2013-01-31.") from None
