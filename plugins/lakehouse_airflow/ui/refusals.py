"""What a person's browser gets instead of a page: Airflow's log-in, or the reason why there is no page."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import RedirectResponse, Response
from starlette import status
from starlette.exceptions import HTTPException

from lakehouse_airflow.pages.rendering import error_page
from lakehouse_airflow.ui.links import airflow_path, login_path

_NO_TOKEN = "Invalid JWT token"
"""What Airflow says, with the status 403, to a token of another Airflow or secret."""


async def show_refusal(request: Request, error: HTTPException) -> Response:
    """Answer a refused request.

    A browser without a valid log-in is led to it and then back to the page, as by Airflow's own pages. A form that it
    has sent is not led there, because the texts that somebody has written would be lost. Other clients than browsers
    get the status with the reason as JSON.
    """
    if "text/html" not in request.headers.get("accept", ""):
        return await http_exception_handler(request, error)
    if not _is_logged_out(error):
        refusal = error_page(HTTPStatus(error.status_code).phrase, error.status_code, str(error.detail))
        refusal.headers.update(error.headers or {})
        return refusal
    if request.method == "GET":
        return RedirectResponse(login_path(request.url.path, request.url.query))
    return error_page(
        "You are not logged in any more",
        error.status_code,
        "The form was not sent.",
        login=login_path(airflow_path()),
    )


def _is_logged_out(error: HTTPException) -> bool:
    """Whether Airflow's own pages would lead to the log-in after this answer."""
    return error.status_code == status.HTTP_401_UNAUTHORIZED or error.detail == _NO_TOKEN
