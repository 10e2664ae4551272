"""The plugin by which Airflow's web server serves Millrace's pages; every Airflow process loads it, so it is light."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from lakehouse_airflow.ui.links import URL_PREFIX


class DataDocsWhenAsked:
    """The web application, imported at its first request: most processes that load plugins serve nothing."""

    async def __call__(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[..., Any]) -> None:
        """Answer one request."""
        from lakehouse_airflow.ui.data_docs import app

        await app(scope, receive, send)


class MillracePlugin(AirflowPlugin):
    """Data Docs of the gates, under `/lakehouse`."""

    name = "millrace"
    fastapi_apps = [  # noqa: RUF012
        {"app": DataDocsWhenAsked(), "url_prefix": URL_PREFIX, "name": "Millrace"}
    ]
