"""The web application of all pages of Millrace. Each router states the rights that its pages need."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from starlette import status
from starlette.exceptions import HTTPException

from include.errors import MillraceError
from lakehouse_airflow.pages import router as pages
from lakehouse_airflow.pages.rendering import error_page
from lakehouse_airflow.ui import backfill_form, data_docs, documentation, metrics, trigger_form
from lakehouse_airflow.ui.refusals import show_refusal

app = FastAPI(title="Millrace", docs_url=None, redoc_url=None, openapi_url=None)
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
