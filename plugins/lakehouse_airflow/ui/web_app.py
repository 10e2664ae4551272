"""The web application of all pages of Millrace. Each router states the rights that its pages need."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import RedirectResponse, Response
from starlette import status
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lakehouse_airflow.pages import router as pages
from lakehouse_airflow.pages.rendering import error_page
from lakehouse_airflow.ui import backfill_form, data_docs, documentation, metrics, trigger_form
from lakehouse_airflow.ui.links import airflow_path, login_path
from millrace.errors import MillraceError

_NO_TOKEN = "Invalid JWT token"
"""What Airflow says, with the status 403, to a token of another Airflow or secret."""


class StrictHeaders:
    """Gives each answer without a content security policy of its own one that lets a browser load nothing.

    Args:
        app: the application that answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def send_strictly(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Content-Security-Policy", "default-src 'none'; frame-ancestors 'self'")
                headers.setdefault("X-Content-Type-Options", "nosniff")
            await send(message)

        await self._app(scope, receive, send_strictly)


async def _show_refusal(request: Request, error: HTTPException) -> Response:
    """Answer a refused request: with the way to the log-in, or with the reason why there is no page.

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


app = FastAPI(title="Millrace", docs_url=None, redoc_url=None, openapi_url=None)
app.add_middleware(StrictHeaders)
app.include_router(data_docs.router)
app.include_router(documentation.router)
app.include_router(trigger_form.router)
app.include_router(backfill_form.router)
app.include_router(pages.router)
app.include_router(metrics.router)
app.exception_handler(HTTPException)(_show_refusal)


@app.exception_handler(MillraceError)
def show_error(_request: Request, error: MillraceError) -> Response:
    """Answer with a page that has the cause and the way out."""
    cause, _, way_out = str(error).partition("\n")
    return error_page("The lakehouse cannot be read", status.HTTP_503_SERVICE_UNAVAILABLE, cause, way_out)
