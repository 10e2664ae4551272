"""The form of a DAG with the fields that a link has filled in: Airflow's own form cannot be opened with values.

The page asks Airflow's public API for the fields and for the run, in the name of the user who has opened it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from html import escape
from json import JSONDecodeError
from typing import Any
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from markdown_it import MarkdownIt
from starlette import status

from lakehouse_airflow.ui.airflow_requests import OF_THIS_SITE, REFUSED, ask_airflow, content, dag_details, reason
from lakehouse_airflow.ui.links import lakehouse_path, run_path, table_path
from lakehouse_airflow.ui.rights import MAY_READ_LOGS
from lakehouse_airflow.ui.web_page import html_page

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")

router = APIRouter(dependencies=[MAY_READ_LOGS])


@router.get("/trigger/{dag_id}")
async def show_form(dag_id: str, request: Request) -> Response:
    """Return the form of a DAG; the query has the values of its fields by their names.

    Raises:
        HTTPException: as Airflow's API: there is no such DAG, or the user may not read it.
    """
    return _form_page(await dag_details(request, dag_id), request.query_params)


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
        return _form_page(details, form, reason(answer))
    run_id = content(answer)["dag_run_id"]
    return RedirectResponse(run_path(dag_id, run_id), status.HTTP_303_SEE_OTHER)


def _form_page(details: Mapping[str, Any], values: Mapping[str, str], problem: str = "") -> Response:
    fields = "".join(_field(name, param, values.get(name)) for name, param in details["params"].items())
    about = _MARKDOWN.render(details["doc_md"] or "")
    title, table = str(details["dag_display_name"]), values.get("table", "")
    above = {table: table_path(table)} if table else {}
    back = next(iter(above.values()), lakehouse_path("tables"))
    body = (
        f"<h1>{escape(title)}</h1>"
        + (f"<p role='alert'><strong>{escape(problem)}</strong></p>" if problem else "")
        + f"<form method='post' action='{escape(quote(details['dag_id'], safe=''))}'>{fields}"
        + f"<p><button>Trigger</button> <a href='{escape(back)}'>Cancel</a></p></form>"
        + f"<p>Then Airflow shows the run; its tab <i>Lakehouse</i> says what it did.</p><hr>{about}"
    )
    return html_page(title, body, status.HTTP_400_BAD_REQUEST if problem else status.HTTP_200_OK, above)


def _field(name: str, param: Mapping[str, Any], stated: str | None) -> str:
    schema, default = param["schema"], param["value"]
    value = stated if stated is not None else "" if default is None else str(default)
    title, about = schema.get("title") or name, schema.get("description_md") or param.get("description") or ""
    label = f"<label for='{escape(name)}'>{escape(title)}</label>"
    return f"<div>{label}{_input(name, schema, value)}<div>{_MARKDOWN.renderInline(about)}</div></div>"


def _input(name: str, schema: Mapping[str, Any], value: str) -> str:
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
    if _is(schema, "integer"):
        return f"<input type='number' required {named} value='{escape(value)}'>"
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
