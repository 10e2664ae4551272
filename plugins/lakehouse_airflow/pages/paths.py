"""The addresses of the pages, and of the pages of Airflow to which they lead."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from lakehouse_airflow.ui.links import (
    DELETES_DAG_ID,
    MAINTENANCE_DAG_ID,
    OVERRIDE_DAG_ID,
    REBUILD_DAG_ID,
    REPAIR_DAG_ID,
    REPLAY_DAG_ID,
    REQUIRED_ACTIONS,
    VACUUM_DAG_ID,
    airflow_path,
    backfill_form_path,
    backfill_plan_path,
    dag_path,
    lakehouse_path,
    run_page_path,
    run_path,
    table_path,
    task_path,
    trigger_path,
    waiting_text,
)
from millrace.overview.attention import Attention, Remedy

__all__ = [
    "APPROVALS",
    "action_path",
    "again_path",
    "airflow_path",
    "backfill_form_path",
    "backfill_plan_path",
    "dag_path",
    "lakehouse_path",
    "lineage_path",
    "quarantine_path",
    "question_path",
    "replay_path",
    "run_page_path",
    "run_path",
    "same_page",
    "style_path",
    "table_path",
    "task_path",
    "vacuum_path",
]

FORMS = {
    Remedy.OVERRIDE: OVERRIDE_DAG_ID,
    Remedy.ALLOW_DELETES: DELETES_DAG_ID,
    Remedy.REBUILD: REBUILD_DAG_ID,
    Remedy.REPLAY: REPLAY_DAG_ID,
}
"""Action -> the DAG whose form carries it out."""

_TABS = {Remedy.FIX_SPEC: "spec", Remedy.DELIVER: "files", Remedy.RUN: "versions", Remedy.STORAGE: "storage"}
"""Action -> the tab of the table that says more about it; the last one if Airflow knows no DAG of the table."""

APPROVALS = (Remedy.OVERRIDE, Remedy.ALLOW_DELETES, Remedy.REBUILD)
"""The actions whose form names the task that then runs again."""


def style_path(version: str) -> str:
    """Return the address of a version of the style sheet."""
    return f"{lakehouse_path('pages.css')}?{urlencode({'v': version})}"


def lineage_path(table: str = "", column: str = "") -> str:
    """Return the address of the page Lineage, of all tables, or around a table, or of a column of it."""
    query = urlencode({name: value for name, value in (("table", table), ("column", column)) if value})
    return f"{lakehouse_path('lineage')}{'?' if query else ''}{query}"


def action_path(item: Attention, dags: Mapping[str, Sequence[str]]) -> str:
    """Return where a person carries the action out, or sees what to do.

    Args:
        item: what needs a person.
        dags: table -> the DAGs that publish it, for the items about runs.
    """
    if item.action in FORMS:
        return trigger_path(FORMS[item.action], **{"table": item.table.table, **_waiting_task(item), **item.fields})
    if item.action is Remedy.DECIDE_COLUMNS:
        return airflow_path(REQUIRED_ACTIONS)
    if item.action is Remedy.LOOK:
        return task_path(item.table.failed[0])
    if item.action is Remedy.MAINTAIN:
        return dag_path(MAINTENANCE_DAG_ID)
    if item.action is Remedy.REPAIR:
        return dag_path(REPAIR_DAG_ID)
    of_table = dags.get(item.table.table, ())
    if item.action is Remedy.RUN and of_table:
        return dag_path(item.table.spec.domain if item.table.spec.domain in of_table else of_table[0])
    return table_path(item.table.table, _TABS[item.action])


def _waiting_task(item: Attention) -> dict[str, str]:
    """Return the field of an approval's form with the failed task, which then runs again; nothing without one."""
    return {"task": waiting_text(item.table.failed[0])} if item.action in APPROVALS and item.table.failed else {}


def question_path(task: Any) -> str:
    """Return where a person answers what a task asks."""
    return f"{task_path(task)}/{REQUIRED_ACTIONS}"


def quarantine_path(table: str, reason: str) -> str:
    """Return the address of the rows of a table that are in quarantine for a reason."""
    return f"{table_path(table, 'quarantine')}?{urlencode({'reason': reason})}"


def replay_path(table: str, reason: str) -> str:
    """Return the address of the form that replays the rows of a table that wait for a reason."""
    return trigger_path(REPLAY_DAG_ID, table=table, reason=reason)


def vacuum_path(table: str) -> str:
    """Return the address of the form that deletes the old files of a table, if a person approves."""
    return trigger_path(VACUUM_DAG_ID, table=table)


def again_path(dag_id: str, form: Mapping[str, Any], **changed: Any) -> str:
    """Return the address of the form of a run with the same values, some of them changed; empty ones are left out.

    >>> again_path("quarantine_replay", {"dry_run": True, "why": None, "set_values": {"a": "b"}}, dry_run=False)
    '/lakehouse/trigger/quarantine_replay?dry_run=False&set_values=%7B%22a%22%3A+%22b%22%7D'
    """
    stated = {name: value for name, value in {**form, **changed}.items() if value not in (None, "")}
    texts = {name: json.dumps(value) if isinstance(value, Mapping) else value for name, value in stated.items()}
    return trigger_path(dag_id, **texts)


def same_page(query: dict[str, str], **changed: str) -> str:
    """Return the query of this page with some values changed; empty values are left out.

    >>> same_page({"q": "a b", "page": "2"}, page="", sort="rows")
    '?q=a+b&sort=rows'
    """
    values = {name: value for name, value in {**query, **changed}.items() if value}
    return f"?{urlencode(values, quote_via=lambda text, *_: quote(text, safe='').replace('%20', '+'))}"
