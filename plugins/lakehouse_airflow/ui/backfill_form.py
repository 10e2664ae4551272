"""The form of a backfill with the days that a plan has filled in: Airflow's own form cannot be opened with dates.

The page asks Airflow's public API for the backfill, in the name of the user who has opened it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette import status

from lakehouse_airflow.pages.rendering import page
from lakehouse_airflow.ui.airflow_requests import OF_THIS_SITE, REFUSED, ask_airflow, content, dag_details, reason
from lakehouse_airflow.ui.links import backfill_form_path, backfills_path
from lakehouse_airflow.ui.rights import MAY_READ_DAG

_DEFAULTS = {"first": "", "last": "", "behavior": "none", "at_once": "1", "reprocess": "", "framed": "", "created": ""}
"""The fields of the form; `created` is the id of a backfill that was created."""

router = APIRouter(dependencies=[MAY_READ_DAG])


@router.get("/backfill/{dag_id}")
async def show_form(dag_id: str, request: Request) -> Response:
    """Return the form for a backfill of a DAG; the query has the values of its fields by their names.

    Raises:
        HTTPException: as Airflow's API: there is no such DAG, or the user may not read it.
    """
    return _form_page(await dag_details(request, dag_id), request.query_params)


@router.post("/backfill/{dag_id}", dependencies=[OF_THIS_SITE])
async def create_backfill(dag_id: str, request: Request) -> Response:
    """Create a backfill and lead to it; if Airflow refuses the values, show the form with the reason.

    Raises:
        HTTPException: as Airflow's API: there is no such DAG, or the user may not run it; or the form is none of this
            site.
    """
    details = await dag_details(request, dag_id)
    form = _DEFAULTS | dict(parse_qsl((await request.body()).decode()))
    answer = await ask_airflow(request, "POST", "/api/v2/backfills", json=_body(dag_id, form))
    if answer.status_code in REFUSED:
        return _form_page(details, form, reason(answer))
    created = content(answer)
    # In Airflow's frame, its page of backfills would open within the frame.
    framed = backfill_form_path(dag_id, framed="yes", created=created["id"])
    return RedirectResponse(framed if form["framed"] else backfills_path(dag_id), status.HTTP_303_SEE_OTHER)


def _body(dag_id: str, form: Mapping[str, str]) -> dict[str, Any]:
    """Return the values as Airflow's API takes them; it says itself what is wrong with a value."""
    return {
        "dag_id": dag_id,
        "from_date": f"{form['first']}T00:00:00Z",
        "to_date": f"{form['last']}T23:59:59Z",
        "reprocess_behavior": form["behavior"],
        "max_active_runs": form["at_once"],
        "dag_run_conf": {"reprocess": True} if form["reprocess"] else None,
    }


def _form_page(details: Mapping[str, Any], values: Mapping[str, str], problem: str = "") -> Response:
    code = status.HTTP_400_BAD_REQUEST if problem else status.HTTP_200_OK
    form = _DEFAULTS | {name: values[name] for name in _DEFAULTS if name in values}
    return page("backfill_plan/form.html", code, dag=details, form=form, framed=bool(form["framed"]), problem=problem)
