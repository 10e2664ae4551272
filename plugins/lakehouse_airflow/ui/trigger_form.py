"""The form of a DAG with the fields that a link has filled in: Airflow's own form cannot be opened with values.

The page asks Airflow's public API for the fields and for the run, in the name of the user who has opened it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from html import escape
from json import JSONDecodeError
from typing import Any
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette import status
from starlette.concurrency import run_in_threadpool

from include.clock import utc_now
from include.errors import MillraceError
from include.overview.attention import attention_needed
from include.overview.columns import column_names
from include.overview.lakehouse import no_failed_tasks
from include.overview.tables.table_overview import TableOverview
from include.specs.invalid_spec import InvalidSpec
from lakehouse_airflow.pages.reader import lakehouse
from lakehouse_airflow.pages.rendering import page
from lakehouse_airflow.ui.airflow_requests import OF_THIS_SITE, REFUSED, ask_airflow, content, dag_details, reason
from lakehouse_airflow.ui.links import DELETES_DAG_ID, run_path, trigger_path
from lakehouse_airflow.ui.rights import MAY_READ_LOGS

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")

router = APIRouter(dependencies=[MAY_READ_LOGS])


@router.get("/trigger/{dag_id}")
async def show_form(dag_id: str, request: Request) -> Response:
    """Return the form of a DAG; the query has the values of its fields by their names.

    Raises:
        HTTPException: as Airflow's API: there is no such DAG, or the user may not read it.
    """
    return await _form_page(await dag_details(request, dag_id), request.query_params)


@router.post("/trigger/{dag_id}", dependencies=[OF_THIS_SITE])
async def trigger(dag_id: str, request: Request) -> Response:
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
        return await _form_page(details, form, reason(answer))
    run_id = content(answer)["dag_run_id"]
    return RedirectResponse(run_path(dag_id, run_id), status.HTTP_303_SEE_OTHER)


async def _form_page(details: Mapping[str, Any], values: Mapping[str, str], problem: str = "") -> Response:
    table = values.get("table", "")
    overview = await run_in_threadpool(_overview, table) if table else None
    lists = _known_values(overview, details["dag_id"]) if overview else {}
    fields = (_field(name, param, values.get(name), lists.get(name, ())) for name, param in details["params"].items())
    return page(
        "trigger.html",
        status.HTTP_400_BAD_REQUEST if problem else status.HTTP_200_OK,
        dag=details,
        action=trigger_path(details["dag_id"]),
        table=table,
        problem=problem,
        overview=overview,
        items=attention_needed([overview], utc_now()) if overview else (),
        fields=Markup("".join(fields)),
        about=Markup(_MARKDOWN.render(details["doc_md"] or "")),
    )


def _overview(table: str) -> TableOverview | None:
    """Return the table as it is now; None if nothing is known: the form works without its numbers."""
    with suppress(MillraceError), lakehouse() as reader:
        return reader.read_table(table, utc_now(), no_failed_tasks)
    return None


def _known_values(table: TableOverview, dag_id: str) -> dict[str, Sequence[str]]:
    """Return field of a form -> the values that it offers for the table; others may be typed as well."""
    asked = [str(deletes.source_version) for deletes in table.questions.deletes]
    refused = [str(table.verdicts.upto)] if table.refusal and table.verdicts else []
    return {
        "version": asked if dag_id == DELETES_DAG_ID else refused,
        "set_column": () if isinstance(table.spec, InvalidSpec) else column_names(table.spec),
        "file": [file.path for file in table.failed_files.files] if table.failed_files else (),
    }


def _field(name: str, param: Mapping[str, Any], stated: str | None, known: Sequence[str]) -> str:
    schema, default = param["schema"], param["value"]
    value = stated if stated is not None else "" if default is None else str(default)
    title, about = schema.get("title") or name, schema.get("description_md") or param.get("description") or ""
    label = f"<label for='{escape(name)}'>{escape(title)}</label>"
    return f"<div>{label}{_input(name, schema, value, known)}<small>{_MARKDOWN.renderInline(about)}</small></div>"


def _input(name: str, schema: Mapping[str, Any], value: str, known: Sequence[str]) -> str:
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
    offered = "".join(f"<option value='{escape(each)}'>" for each in known)
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
    if _is(schema, "integer") and text.lstrip("-").isdecimal():
        return int(text)
    if _is(schema, "object"):
        with suppress(JSONDecodeError):
            return json.loads(text) if text else None
    return None if not text and _is(schema, "null") else text


def _is(schema: Mapping[str, Any], kind: str) -> bool:
    kinds = schema.get("type") or ()
    return kind == kinds or (not isinstance(kinds, str) and kind in kinds)
