"""`lakehouse run` asks a running Airflow over HTTP: who it says it is, and what it says when Airflow refuses."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import httpx
import pytest
import uvicorn
from airflow.api_fastapi.app import create_app, purge_cached_app
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from sqlalchemy.orm import Session

from include.cli.runs.asset_events import announce
from include.contracts.airflow_access import AirflowAccess
from include.contracts.job.args import Job
from include.contracts.job.report import JobReport, RowCounts
from include.errors import Outcome
from include.paths import LakehousePaths
from tests.support.ledger.delta_tables import day

TABLE = "silver.flights"


@pytest.fixture(scope="module")
def url(database: Session) -> Iterator[str]:
    """The address of an Airflow whose database has the assets of dags/."""
    with pytest.MonkeyPatch.context() as patch, socket.create_server(("127.0.0.1", 0)) as listener:
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", "dan:op,ann:viewer")
        server = uvicorn.Server(uvicorn.Config(create_app("core"), log_level="error"))
        thread = Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
            purge_cached_app()


@pytest.fixture
def passwords(url: str) -> dict[str, str]:
    """User -> password: dan may create asset events, ann may only read."""
    assert httpx.get(f"{url}/api/v2/version", timeout=60).status_code == 200
    return dict(SimpleAuthManager.get_passwords())


def told(access: AirflowAccess, version: int, lake: Path) -> tuple[list[str], str]:
    """Announce a version of `TABLE`, and return the lines about it."""
    report = JobReport(
        job=Job.SILVER_MERGE.value,
        table=TABLE,
        outcome=Outcome.COMMITTED,
        message="",
        interval=day(),
        run_id="cli",
        version=version,
        certified_version=version,
        certified_moved=True,
        rows=RowCounts(read=2, applied=2),
    )
    return announce([report], access, LakehousePaths(lake))


def test_a_password_or_a_token_is_enough(url: str, passwords: dict[str, str], tmp_path: Path) -> None:
    login = {"username": "dan", "password": passwords["dan"]}
    answer = httpx.post(f"{url}/auth/token", json=login, timeout=60).json()
    by_password = AirflowAccess(url=url, login="dan", password=passwords["dan"])
    by_token = AirflowAccess(url=url, token=answer["access_token"])
    for version, access in ((7, by_password), (8, by_token)):
        summary = f"{TABLE} version {version}: 2 rows read, 2 rows applied"
        assert told(access, version, tmp_path) == ([f"asset event: {summary}"], "")


def test_an_airflow_that_is_away_or_refuses_is_named_in_one_line(
    url: str, passwords: dict[str, str], tmp_path: Path
) -> None:
    away = AirflowAccess(url="http://127.0.0.1:1", login="dan", password=passwords["dan"])
    wrong_password = AirflowAccess(url=url, login="dan", password="wr0ng")
    wrong_token = AirflowAccess(url=url, token="wr0ng")
    no_right = AirflowAccess(url=url, login="ann", password=passwords["ann"])
    no_url = AirflowAccess(url="airflow", login="dan", password=passwords["dan"])
    refused = ((away, "Connection refused"), (wrong_password, "401"), (wrong_token, "403"), (no_right, "403"))
    for access, reason in (*refused, (no_url, "protocol")):
        lines, problem = told(access, 9, tmp_path)
        assert lines == []
        assert problem.startswith(f"Airflow at {access.url} was not told of all certified versions (")
        assert reason in problem
        assert "\n" not in problem
        assert "wr0ng" not in problem


@pytest.mark.parametrize("given", [{}, {"login": "dan", "token": "t"}])
def test_who_asks_is_either_a_user_or_a_token(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match='either "login" and "password", or "token"'):
        AirflowAccess(url="http://airflow", **given)
