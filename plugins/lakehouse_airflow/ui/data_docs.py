"""Serves the Data Docs of a run: built when somebody opens them, from what the run's gates have recorded.

A process of its own builds them, for Great Expectations takes seconds to import and hundreds of megabytes. Who may read
the logs of a DAG's tasks may read its pages. Values of tables are in them, so they may neither run a script nor load
anything from elsewhere.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import requires_access_dag
from airflow.models.xcom import XComModel
from airflow.sdk.exceptions import AirflowFailException
from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import FileResponse, RedirectResponse
from starlette import status

from include.contracts.job.data_docs_args import DataDocsArgs, JudgedVersion
from include.paths import RunPaths
from include.settings import PROJECT, Settings
from lakehouse_airflow.hooks.store_access import reach_store
from lakehouse_airflow.ui.links import JUDGED

log = logging.getLogger(__name__)

BUILDER = "spark_jobs.jobs.data_docs"
PATIENCE_S = 180

_SAFE = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self' 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-cache",
}
_KEPT = frozenset(
    (
        *("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV"),
        *("REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    )
)
_KEPT_PREFIXES = ("AWS_", "LC_", "SSL_CERT_")
_TYPES = {".html": "text/html", ".css": "text/css"}

app = FastAPI(
    title="Millrace",
    docs_url=None,
    redoc_url=None,
    openapi_url=None,
    dependencies=[Depends(requires_access_dag("GET", DagAccessEntity.TASK_LOGS))],
)


@app.get("/data-docs/{dag_id}/{run_id}/{table}")
def open_page(dag_id: str, run_id: str, table: str, session: SessionDep) -> RedirectResponse:
    """Build the run's pages, unless they are as its gates left it, and lead to that of the table.

    Raises:
        HTTPException: 404 where no gate of the run has judged the table, 500 where the pages could not be built.
    """
    judged = judged_in(dag_id, run_id, session)
    if table not in {one.table for one in judged}:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"no gate of run {run_id} of {dag_id} has judged {table}")
    return RedirectResponse(f"pages/{_built(dag_id, run_id, judged)}/{table}.html")


@app.get("/data-docs/{dag_id}/{run_id}/pages/{name}/{page}")
def read_page(dag_id: str, run_id: str, name: str, page: str, session: SessionDep) -> FileResponse:
    """One page of those that `open_page` led to, or its style sheet.

    The disk may be that of another web server than the one that built them: then they are built here too. The same
    results make a folder of the same name.

    Raises:
        HTTPException: 404 where there is none of that name, 500 where the pages could not be built.
    """
    folder = run_folder(dag_id, run_id, Settings().absolute().run_paths)
    file = (folder / name / page).resolve()
    if file.parent.parent != folder or file.suffix not in _TYPES:
        raise _no_such_page()
    if not file.parent.exists() and (judged := judged_in(dag_id, run_id, session)):
        _built(dag_id, run_id, judged)
    if not file.is_file():
        raise _no_such_page()
    return FileResponse(file, media_type=_TYPES[file.suffix], headers=_SAFE)


def _no_such_page() -> HTTPException:
    return HTTPException(status.HTTP_404_NOT_FOUND, "there is no such page: open the gate's link Data Docs again")


def run_folder(dag_id: str, run_id: str, paths: RunPaths) -> Path:
    """Where the pages of a run are kept; no name leads out of it."""
    dag, run = (quote(name, safe=":+") for name in (dag_id, run_id))
    return paths.data_docs / f"dag={dag}" / f"run={run}"


def judged_in(dag_id: str, run_id: str, session: SessionDep) -> tuple[JudgedVersion, ...]:
    """What the gates of a run have decided about, by their tables."""
    left = session.execute(
        XComModel.get_many(key=JUDGED, run_id=run_id, dag_ids=dag_id).with_only_columns(XComModel.value)
    )
    judged = [JudgedVersion.model_validate(XComModel.deserialize_value(row)) for row in left]
    return tuple(sorted(judged, key=lambda one: (one.table, one.version)))


def builder_environment(base: Mapping[str, str]) -> dict[str, str]:
    """What the builder needs of a web server's environment: how to run, and how to reach the store of the tables.

    None of the server's secrets is among it: not Airflow's, nor those of anything else that it talks to.
    """
    kept = {name: value for name, value in base.items() if name.upper() in _KEPT or name.startswith(_KEPT_PREFIXES)}
    return {**kept, "PYTHONPATH": str(PROJECT), "GX_ANALYTICS_ENABLED": "False"}


def _built(dag_id: str, run_id: str, judged: tuple[JudgedVersion, ...]) -> str:
    """The name of the folder that holds the run's pages; they are built unless this machine has them."""
    settings, environment = Settings().absolute(), builder_environment(os.environ)
    folder = run_folder(dag_id, run_id, settings.run_paths)
    args = DataDocsArgs(root=settings.root, folder=folder, run_id=run_id, judged=judged)
    command = [sys.executable, "-m", BUILDER, *args.to_argv()]
    try:
        reach_store(environment, settings)
        built = subprocess.run(
            command, env=environment, cwd=PROJECT, capture_output=True, text=True, timeout=PATIENCE_S, check=True
        )
    except AirflowFailException as wrong:
        raise HTTPException(status.HTTP_500_INTERNAL_SERVER_ERROR, str(wrong)) from None
    except subprocess.SubprocessError as error:
        log.error("The Data Docs of %s could not be built: %s\n%s", args.run_id, error, error.stderr)
        said = (error.stderr or str(error)).strip().split("\n")[-1]
        raise HTTPException(
            status.HTTP_500_INTERNAL_SERVER_ERROR, f"The Data Docs could not be built: {said}"
        ) from None
    return built.stdout.strip()
