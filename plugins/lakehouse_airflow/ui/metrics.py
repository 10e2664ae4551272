"""Answer Prometheus, which has no login of Airflow but a token of its own."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Annotated

from airflow.api_fastapi.common.db.common import SessionDep
from fastapi import APIRouter, Header
from fastapi.responses import PlainTextResponse, Response
from prometheus_client.exposition import choose_encoder
from starlette import status

from lakehouse_airflow.pages.failed_tasks import failed_tasks
from lakehouse_airflow.pages.reader import lakehouse
from millrace.errors import MillraceError
from millrace.metrics.collector import LakehouseCollector
from millrace.settings import Settings

router = APIRouter()

_NO_TOKEN = (
    "there are no metrics without a token: set LAKEHOUSE_METRICS_TOKEN or LAKEHOUSE_METRICS_TOKEN_FILE for the API "
    "server\n"
)
_UNREADABLE = "the file in LAKEHOUSE_METRICS_TOKEN_FILE cannot be read\n"


@router.get("/metrics")
def metrics(
    session: SessionDep, authorization: Annotated[str, Header()] = "", accept: Annotated[str, Header()] = ""
) -> Response:
    """Return the metrics in the format that the scraper accepts: OpenMetrics, or Prometheus' text.

    It answers 403 if no token is configured, 401 to another token, and 503 if the lakehouse cannot be read, so that
    Prometheus sees the scrape fail (`up == 0`).
    """
    try:
        token = _token(Settings())
    except (OSError, UnicodeDecodeError):
        return PlainTextResponse(_UNREADABLE, status.HTTP_403_FORBIDDEN)
    if not token:
        return PlainTextResponse(_NO_TOKEN, status.HTTP_403_FORBIDDEN)
    # Starlette reads the bytes of a header as Latin-1.
    if not secrets.compare_digest(authorization.encode("latin-1"), f"Bearer {token}".encode()):
        headers = {"WWW-Authenticate": "Bearer"}
        return PlainTextResponse("this is not the token of the metrics\n", status.HTTP_401_UNAUTHORIZED, headers)
    encode, content_type = choose_encoder(accept)
    try:
        with lakehouse() as reader:
            body = encode(LakehouseCollector(reader, partial(failed_tasks, session)))
    except MillraceError as error:
        return PlainTextResponse(f"{error}\n", status.HTTP_503_SERVICE_UNAVAILABLE)
    return Response(body, headers={"Content-Type": content_type, "Cache-Control": "no-store"})


def _token(settings: Settings) -> str:
    """Return the token that a scraper needs; empty if none is configured."""
    token = settings.metrics_token.get_secret_value()
    if not token and settings.metrics_token_file:
        token = settings.metrics_token_file.read_text(encoding="utf-8")
    return token.strip()
