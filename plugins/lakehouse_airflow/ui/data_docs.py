"""Serve the Data Docs of a run, built at the first request from the results of the run's gates.

A separate process builds them, because Great Expectations takes seconds and hundreds of megabytes to import. One works
at a time, so that many people who click take no more of the machine than one does, and no connection of the server. A
user who may see values of rows of the DAG's domain may read its pages. They contain such values, so the browser may
neither run scripts in them nor load anything from other sites.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.models.xcom import XComModel
from airflow.sdk.exceptions import AirflowFailException
from fastapi import APIRouter, HTTPException
from fastapi.responses import FileResponse, RedirectResponse
from filelock import FileLock
from filelock import Timeout as LockTimeoutError
from starlette import status

from lakehouse_airflow.hooks.store_access import reach_store
from lakehouse_airflow.pages.reader import lakehouse
from lakehouse_airflow.ui.links import CHECKED_KEY
from lakehouse_airflow.ui.rights import MAY_SEE_ROWS
from millrace.contracts.job.args import CheckedVersion, DataDocsArgs
from millrace.control.gates.gates import folder_name, results_of
from millrace.paths import RunPaths
from millrace.settings import Settings

log = logging.getLogger(__name__)

BUILDER = "millrace_spark.jobs.data_docs"
TIMEOUT_S = 180

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self' 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-cache",
}
_BUILDER_VARIABLES = frozenset(
    (
        *("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV"),
        *("REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    )
)
_BUILDER_PREFIXES = ("AWS_", "LC_", "SSL_CERT_")
_TYPES = {".html": "text/html", ".css": "text/css"}

router = APIRouter(dependencies=[MAY_SEE_ROWS])


@router.get("/data-docs/{dag_id}/{run_id}/{table}")
def open_page(dag_id: str, run_id: str, table: str, session: SessionDep) -> RedirectResponse:
    """Build the run's pages, unless they are up to date, and redirect to the page of the table.

    Raises:
        HTTPException: 404 if no gate of the run has checked the table, 503 while other pages are built, 500 if they
            could not be built.
    """
    versions = checked_versions(dag_id, run_id, session)
    if table not in {version.table for version in versions}:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"no gate of run {run_id} of {dag_id} has checked {table}")
    return RedirectResponse(f"pages/{_build(dag_id, run_id, versions)}/{table}.html")


@router.get("/data-docs/{dag_id}/{run_id}/pages/{name}/{page}")
def read_page(dag_id: str, run_id: str, name: str, page: str, session: SessionDep) -> FileResponse:
    """Return one of the pages that `open_page` redirects to, or their style sheet.

    If another web server built the pages on another disk, they are built here too: the same results make a folder of
    the same name.

    Raises:
        HTTPException: 404 if there is no page of that name, 503 while other pages are built, 500 if they could not be
            built.
    """
    folder = run_folder(dag_id, run_id, Settings().absolute().run_paths)
    file = (folder / name / page).resolve()
    if file.parent.parent != folder or file.suffix not in _TYPES:
        raise _no_such_page()
    if not file.parent.exists() and (versions := checked_versions(dag_id, run_id, session)):
        _build(dag_id, run_id, versions)
    if not file.is_file():
        raise _no_such_page()
    return FileResponse(file, media_type=_TYPES[file.suffix], headers=_HEADERS)


def _no_such_page() -> HTTPException:
    return HTTPException(status.HTTP_404_NOT_FOUND, "there is no such page: open the gate's link Data Docs again")


def run_folder(dag_id: str, run_id: str, paths: RunPaths) -> Path:
    """Return the folder of a run's pages; no name of a DAG or run leads out of the folder of all pages."""
    dag, run = (quote(name, safe=":+") for name in (dag_id, run_id))
    return paths.data_docs / f"dag={dag}" / f"run={run}"


def checked_versions(dag_id: str, run_id: str, session: SessionDep) -> tuple[CheckedVersion, ...]:
    """Return the versions that the gates of a run have checked, sorted by table."""
    values = session.execute(
        XComModel.get_many(key=CHECKED_KEY, run_id=run_id, dag_ids=dag_id).with_only_columns(XComModel.value)
    )
    versions = [CheckedVersion.model_validate(XComModel.deserialize_value(value)) for value in values]
    session.close()  # Others need its connection while the pages are built.
    return tuple(sorted(versions, key=lambda version: (version.table, version.version)))


def builder_environment(base: Mapping[str, str]) -> dict[str, str]:
    """Return the builder's environment: the variables to run with and to reach the store of the tables.

    It has no secret of the web server, neither Airflow's nor those of other systems.
    """
    variables = {
        name: value
        for name, value in base.items()
        if name.upper() in _BUILDER_VARIABLES or name.startswith(_BUILDER_PREFIXES)
    }
    return {**variables, "GX_ANALYTICS_ENABLED": "False"}


def _build(dag_id: str, run_id: str, versions: tuple[CheckedVersion, ...]) -> str:
    """Build the run's pages unless this machine has them; return the name of their folder."""
    settings, environment = Settings().absolute(), builder_environment(os.environ)
    folder = run_folder(dag_id, run_id, settings.run_paths)
    with lakehouse() as reader, reader.ledger() as ops:
        results = results_of(ops.gates, versions)
    if results and (folder / folder_name(results)).exists():
        return folder_name(results)
    args = DataDocsArgs(root=settings.root, folder=folder, run_id=run_id, versions=versions)
    command = [sys.executable, "-m", BUILDER, *args.to_argv()]
    settings.run_paths.data_docs.mkdir(parents=True, exist_ok=True)
    try:
        reach_store(environment, settings)
        with FileLock(settings.run_paths.data_docs / "builder.lock", blocking=False):
            builder = subprocess.run(command, env=environment, capture_output=True, timeout=TIMEOUT_S, check=True)
    except LockTimeoutError:
        raise HTTPException(
            status.HTTP_503_SERVICE_UNAVAILABLE,
            "Data Docs are being built: this page opens the link again in a few seconds",
            {"Retry-After": "5", "Refresh": "5"},
        ) from None
    except AirflowFailException as error:
        raise HTTPException(status.HTTP_500_INTERNAL_SERVER_ERROR, str(error)) from None
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        # Of a builder that takes too long, the output would be bytes even if this asked for text.
        output = (error.stderr or b"").decode(errors="replace")
        log.error("The Data Docs of %s could not be built: %s\n%s", args.run_id, error, output)
        last_line = (output or str(error)).strip().split("\n")[-1]
        message = f"The Data Docs could not be built: {last_line}"
        raise HTTPException(status.HTTP_500_INTERNAL_SERVER_ERROR, message) from None
    return str(builder.stdout.decode().strip())
