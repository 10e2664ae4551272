"""Requests to Airflow's own application, within its process, in the name of the user who has opened a page.

So a page needs no rights of its own, and Airflow checks the rights and the values as for its own forms.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlsplit

import httpx
from fastapi import Depends, HTTPException, Request
from starlette import status

from lakehouse_airflow.ui.links import AIRFLOW

_USER = ("authorization", "cookie", "referer")
"""The headers of a request by which Airflow knows the user, and that the user has used a form."""

REFUSED = (status.HTTP_400_BAD_REQUEST, status.HTTP_409_CONFLICT, status.HTTP_422_UNPROCESSABLE_CONTENT)
"""The answers of Airflow to values that a person can correct."""


def _refuse_other_sites(request: Request) -> None:
    """Refuse a form that another site sends: browsers let it, and may add the user's cookie.

    Airflow's own API needs no such check, because browsers send JSON to another site only with its consent.
    """
    headers = request.headers
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    # Browsers name the site only to an address that is https or local.
    is_own = site == "same-origin" if site else origin is None or urlsplit(origin).netloc == headers.get("host")
    if not is_own:
        raise HTTPException(status.HTTP_403_FORBIDDEN, "the form was sent by another site")


OF_THIS_SITE = Depends(_refuse_other_sites)
"""What a route needs that takes a form: another site must not send it."""


async def ask_airflow(request: Request, method: str, path: str, **arguments: Any) -> httpx.Response:
    """Send a request of the same user to Airflow's own application, without a network."""
    headers = {name: request.headers[name] for name in _USER if name in request.headers}
    transport = httpx.ASGITransport(app=request.scope[AIRFLOW])
    async with httpx.AsyncClient(transport=transport, base_url=str(request.base_url.replace(path=""))) as airflow:
        return await airflow.request(method, path, headers=headers, **arguments)


async def dag_details(request: Request, dag_id: str) -> Any:
    """Return what Airflow's API says of a DAG.

    Raises:
        HTTPException: there is no such DAG, or the user may not read it.
    """
    return content(await ask_airflow(request, "GET", f"/api/v2/dags/{quote(dag_id, safe='')}/details"))


def content(answer: httpx.Response) -> Any:
    """Return the content of an answer.

    Raises:
        HTTPException: Airflow refused the request; with its status and reason.
    """
    if answer.is_success:
        return answer.json()
    raise HTTPException(answer.status_code, reason(answer))


def reason(answer: httpx.Response) -> str:
    """Return why Airflow refused a request."""
    detail = answer.json().get("detail", "")
    return detail if isinstance(detail, str) else str(detail)
