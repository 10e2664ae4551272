"""The plugin with Millrace's pages for Airflow's web server; all Airflow processes load it, so it imports little."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from lakehouse_airflow import pool
from lakehouse_airflow.ui import run_notes
from lakehouse_airflow.ui.links import AIRFLOW, URL_PREFIX, glossary_path, lakehouse_path, run_tab_path


class LazyPages:
    """The web application, imported at its first request: most processes that load plugins serve nothing."""

    async def __call__(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[..., Any]) -> None:
        """Answer one request."""
        from lakehouse_airflow.ui.web_app import app

        # The pages ask Airflow's own application; from here on `app` is theirs.
        await app({**scope, AIRFLOW: scope.get("app")}, receive, send)


class RedirectToLakehouse:
    """Leads from `/lakehouse` to the list of all tables; without the slash Airflow's own pages would answer.

    Args:
        app: the application behind it.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[..., Any]) -> None:
        """Answer one request, or hand it on."""
        app = self._app
        if scope["type"] == "http" and scope["path"].removeprefix(scope.get("root_path", "")).rstrip("/") == URL_PREFIX:
            from starlette.responses import RedirectResponse

            query = scope["query_string"].decode("latin-1")
            app = RedirectResponse(lakehouse_path("tables") + (f"?{query}" if query else ""))
        await app(scope, receive, send)


class MillracePlugin(AirflowPlugin):
    """All pages under `/lakehouse`, their entry *Lakehouse* in the menu *Browse*, and the glossary in *Docs*.

    Outside of a menu Airflow 3.3 would show the entry as a button that does nothing.

    The pages open in a tab of their own: Airflow's frame for them would let no link lead out of it. *Backfill plan* is
    a tab of every DAG, and what a run did is one of every run. Airflow shows such a tab in that frame alone.

    Listeners write the day into the note of a run, and create the pool of Spark tasks if it is missing.
    """

    name = "millrace"
    fastapi_apps = [  # noqa: RUF012
        {"app": LazyPages(), "url_prefix": URL_PREFIX, "name": "Millrace"}
    ]
    fastapi_root_middlewares = [  # noqa: RUF012
        {"middleware": RedirectToLakehouse, "name": "Millrace"}
    ]
    external_views = [  # noqa: RUF012
        {"name": "Lakehouse", "href": lakehouse_path("tables"), "destination": "nav", "category": "browse"},
        {
            "name": "Backfill plan",
            "href": f"{lakehouse_path('backfill-plan')}/{{DAG_ID}}?framed=yes",
            "destination": "dag",
            "url_route": "backfill-plan",
        },
        {"name": "Millrace glossary", "href": glossary_path(), "destination": "nav", "category": "docs"},
        {"name": "Lakehouse", "href": run_tab_path(), "destination": "dag_run", "url_route": "lakehouse-run"},
    ]
    listeners = [pool, run_notes]  # noqa: RUF012
