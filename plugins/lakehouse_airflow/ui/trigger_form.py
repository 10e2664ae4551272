"""The form of a DAG with the fields that a link has filled in: Airflow's own form cannot be opened with values.

The page asks Airflow's public API for the fields and for the run, in the name of the user who has opened it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from html import escape
from json import JSONDecodeError
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote

from airflow.api_fastapi.common.db.common import SessionDep
from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette import status
from starlette.concurrency import run_in_threadpool

from lakehouse_airflow.pages.failed_tasks import failed_tasks
from lakehouse_airflow.pages.reader import lakehouse
from lakehouse_airflow.pages.rendering import page
from lakehouse_airflow.pages.tabs.spec import changes_of
from lakehouse_airflow.ui.airflow_requests import OF_THIS_SITE, REFUSED, ask_airflow, content, dag_details, reason
from lakehouse_airflow.ui.links import (
    DELETES_DAG_ID,
    REBUILD_DAG_ID,
    REPLAY_DAG_ID,
    run_path,
    trigger_path,
    waiting_text,
)
from lakehouse_airflow.ui.rights import MAY_READ_LOGS
from millrace.clock import utc_now
from millrace.contracts.counted import counted
from millrace.contracts.job.findings import without_value
from millrace.contracts.job.requests import FormAction, RowFilter
from millrace.contracts.row_status import PENDING, RowStatus
from millrace.contracts.time_format import MINUTE
from millrace.control.ops_tables import OpsTables
from millrace.control.quarantine.fixable_columns import fixable_columns
from millrace.control.quarantine.rows import newest_rows, refusals
from millrace.control.quarantine.stored_rows import StoredRows
from millrace.errors import MillraceError
from millrace.overview.attention import attention_needed
from millrace.overview.tables.table_overview import TableOverview

_Lists = Mapping[str, Mapping[str, str]]
"""Field of a form -> each value that it offers, others may be typed as well -> what is said about the value."""

_OFFERED_ROWS = 50
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")

router = APIRouter(dependencies=[MAY_READ_LOGS])


@router.get("/trigger/{dag_id}")
async def show_form(dag_id: str, request: Request, session: SessionDep) -> Response:
    """Return the form of a DAG; the query has the values of its fields by their names.

    Raises:
        HTTPException: as Airflow's API: there is no such DAG, or the user may not read it.
    """
    return await _form_page(session, await dag_details(request, dag_id), request.query_params)


@router.post("/trigger/{dag_id}", dependencies=[OF_THIS_SITE])
async def trigger(dag_id: str, request: Request, session: SessionDep) -> Response:
    """Start a run with the values of the form and lead to it; if Airflow refuses them, show the form with the reason.

    Raises:
        HTTPException: as Airflow's API: there is no such DAG, or the user may not trigger it; or the form is none of
            this site.
    """
    details = await dag_details(request, dag_id)
    form = {name: values[-1] for name, values in parse_qs((await request.body()).decode()).items()}
    conf = {name: _value(param["schema"], form.get(name, "")) for name, param in details["params"].items()}
    body = {"logical_date": None, "conf": conf}
    answer = await ask_airflow(request, "POST", f"/api/v2/dags/{quote(dag_id, safe='')}/dagRuns", json=body)
    if answer.status_code in REFUSED:
        return await _form_page(session, details, form, reason(answer))
    run_id = content(answer)["dag_run_id"]
    return RedirectResponse(run_path(dag_id, run_id), status.HTTP_303_SEE_OTHER)


async def _form_page(
    session: SessionDep, details: Mapping[str, Any], values: Mapping[str, str], problem: str = ""
) -> Response:
    table, dag_id = values.get("table", ""), details["dag_id"]
    known = await run_in_threadpool(_known, session, table, dag_id, values.get("action", ""))
    overview, params = known.overview, details["params"].items()
    fields = (_field(name, param, values.get(name), known.lists.get(name, {})) for name, param in params)
    return page(
        "trigger.html",
        status.HTTP_400_BAD_REQUEST if problem else status.HTTP_200_OK,
        dag=details,
        action=trigger_path(dag_id),
        table=table,
        problem=problem,
        overview=overview,
        changes=known.changes,
        items=attention_needed([overview], utc_now()) if overview else (),
        fields=Markup("".join(fields)),
        about=Markup(_MARKDOWN.render(details["doc_md"] or "")),
    )


class _Known(NamedTuple):
    """What is known of the table of a form.

    Attributes:
        overview: the table as it is now; None if nothing is known: the form works without.
        lists: what the fields offer.
        changes: how the table differs from its spec, for the form that rebuilds it.
    """

    overview: TableOverview | None = None
    lists: _Lists = MappingProxyType({})
    changes: Sequence[str] = ()


def _known(session: SessionDep, table: str, dag_id: str, action: str) -> _Known:
    with suppress(MillraceError), lakehouse() as reader:
        overview = reader.read_table(table, utc_now(), partial(failed_tasks, session)) if table else None
        if overview is not None:
            with reader.ledger() as ops:
                of_rows = _rows_to_offer(overview, ops, action) if dag_id == REPLAY_DAG_ID else {}
                changes = changes_of(overview, ops) if dag_id == REBUILD_DAG_ID else ()
            return _Known(overview, {**of_rows, **_known_values(overview, dag_id)}, changes)
    return _Known()


def _known_values(table: TableOverview, dag_id: str) -> _Lists:
    asked = {str(each.source_version): f"{each.keys:,} of {each.of_keys:,} keys" for each in table.questions.deletes}
    refused = {str(table.verdicts.upto): "refused"} if table.refusal and table.verdicts else {}
    files = table.failed_files.files if table.failed_files else ()
    return {
        "version": asked if dag_id == DELETES_DAG_ID else refused,
        "file": {file.path: counted(file.attempts, "attempt") for file in files},
        "task": {waiting_text(task): f"failed at {task.at:{MINUTE}} UTC" for task in table.failed},
    }


def _rows_to_offer(table: TableOverview, ops: OpsTables, action: str) -> _Lists:
    """Return the rows, reasons and columns of a quarantine, for those that wait, or were discarded and may be reopened.

    No label has a value of a row: more people may open the form.
    """
    statuses = (RowStatus.DISCARDED,) if action == FormAction.REOPEN else PENDING
    rows = StoredRows(table.table, ops.paths, ops.quarantine)
    newest = newest_rows(rows, RowFilter(statuses=statuses), _OFFERED_ROWS)
    return {
        "ids": {row.id: "; ".join(map(without_value, row.reasons)) for row in newest},
        "reason": {refusal.reason: counted(refusal.rows, "row") for refusal in refusals(rows, statuses)},
        "set_column": dict.fromkeys(fixable_columns(table.spec, ops.paths)(""), ""),
    }


def _field(name: str, param: Mapping[str, Any], stated: str | None, known: Mapping[str, str]) -> str:
    schema, default = param["schema"], param["value"]
    value = stated if stated is not None else "" if default is None else str(default)
    title, about = schema.get("title") or name, schema.get("description_md") or param.get("description") or ""
    label = f"<label for='{escape(name)}'>{escape(title)}</label>"
    return f"<div>{label}{_input(name, schema, value, known)}<small>{_MARKDOWN.renderInline(about)}</small></div>"


def _input(name: str, schema: Mapping[str, Any], value: str, known: Mapping[str, str]) -> str:
    named = f"id='{escape(name)}' name='{escape(name)}'"
    if "enum" in schema:
        texts = ["" if option is None else str(option) for option in schema["enum"]]
        options = [f"<option{' selected' if text == value else ''}>{escape(text)}</option>" for text in texts]
        if value not in texts:
            # Otherwise a browser would choose the first value for a person who has not chosen.
            options.insert(0, "<option value='' selected disabled></option>")
        required = "" if "" in texts else " required"
        return f"<select{required} {named}>{''.join(options)}</select>"
    if _is(schema, "boolean"):
        return f"<input type='checkbox' {named}{' checked' if value.lower() == 'true' else ''}>"
    offered = "".join(f"<option value='{escape(each)}'>{escape(about)}</option>" for each, about in known.items())
    listed = f" list='{escape(name)}-list'" if known else ""
    suggested = f"<datalist id='{escape(name)}-list'>{offered}</datalist>" if known else ""
    if _is(schema, "integer"):
        return f"<input type='number' required {named}{listed} value='{escape(value)}'>{suggested}"
    if known:
        return f"<input type='text' {named}{listed} value='{escape(value)}'>{suggested}"
    required = " required" if schema.get("minLength") else ""
    return f"<textarea rows='1' {named}{required}>{escape(value)}</textarea>"


def _value(schema: Mapping[str, Any], text: str) -> Any:
    """Return the value of a field, or its text if that is none of its type: Airflow then says what is wrong."""
    if _is(schema, "boolean"):
        return text in ("on", "true", "True")
    if _is(schema, "integer"):
        with suppress(ValueError):
            return int(text)
    if _is(schema, "object"):
        with suppress(JSONDecodeError):
            return json.loads(text) if text else None
    return None if not text and _is(schema, "null") else text


def _is(schema: Mapping[str, Any], kind: str) -> bool:
    kinds = schema.get("type") or ()
    return kind == kinds or (not isinstance(kinds, str) and kind in kinds)
