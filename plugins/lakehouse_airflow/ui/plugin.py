"""The plugin with Millrace's pages for Airflow's web server; all Airflow processes load it, so it imports little."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from lakehouse_airflow import pool
from lakehouse_airflow.ui import run_notes
from lakehouse_airflow.ui.links import AIRFLOW, URL_PREFIX, glossary_path


class LazyDataDocs:
    """The web application, imported at its first request: most processes that load plugins serve nothing."""

    async def __call__(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[..., Any]) -> None:
        """Answer one request."""
        from lakehouse_airflow.ui.data_docs import app

        # The pages ask Airflow's own application; from here on `app` is theirs.
        await app({**scope, AIRFLOW: scope.get("app")}, receive, send)


class MillracePlugin(AirflowPlugin):
    """Data Docs and documentation under `/lakehouse`, and the glossary in the menu *Docs*.

    Listeners write the day into the note of a run, and create the pool of Spark tasks if it is missing.
    """

    name = "millrace"
    fastapi_apps = [  # noqa: RUF012
        {"app": LazyDataDocs(), "url_prefix": URL_PREFIX, "name": "Millrace"}
    ]
    external_views = [  # noqa: RUF012
        {"name": "Millrace glossary", "href": glossary_path(), "destination": "nav", "category": "docs"}
    ]
    listeners = [pool, run_notes]  # noqa: RUF012
