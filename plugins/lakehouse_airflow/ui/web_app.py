"""The web application of all pages of Millrace. Each router states the rights that its pages need."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from starlette import status
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lakehouse_airflow.pages import router as pages
from lakehouse_airflow.pages.rendering import error_page
from lakehouse_airflow.ui import backfill_form, data_docs, documentation, metrics, trigger_form
from lakehouse_airflow.ui.refusals import show_refusal
from millrace.errors import MillraceError


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


app = FastAPI(title="Millrace", docs_url=None, redoc_url=None, openapi_url=None)
app.add_middleware(StrictHeaders)
app.include_router(data_docs.router)
app.include_router(documentation.router)
app.include_router(trigger_form.router)
app.include_router(backfill_form.router)
app.include_router(pages.router)
app.include_router(metrics.router)
app.exception_handler(HTTPException)(show_refusal)


@app.exception_handler(MillraceError)
def show_error(_request: Request, error: MillraceError) -> Response:
    """Answer with a page that has the cause and the way out."""
    cause, _, way_out = str(error).partition("\n")
    return error_page("The lakehouse cannot be read", status.HTTP_503_SERVICE_UNAVAILABLE, cause, way_out)
