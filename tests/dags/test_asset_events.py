"""`lakehouse run` announces certified versions: real HTTP requests to Airflow's real API server."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
import uvicorn
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from fastapi.testclient import TestClient

from millrace.cli.runs.asset_events import announce
from millrace.contracts.airflow_access import AirflowAccess
from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport, RowCounts
from millrace.errors import Outcome
from millrace.paths import LakehousePaths
from tests.support.airflow.logins import login
from tests.support.deliveries import Deliver
from tests.support.documents.specs import bronze_spec
from tests.support.ledger.delta_tables import day
from tests.support.ledger.small_lake import commit_batch

TABLE, RUN = "bronze.weather", "cli-1"

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(scope="module")
def url(server: TestClient) -> Iterator[str]:
    """The address of an Airflow whose database has the assets of dags/."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        web = uvicorn.Server(uvicorn.Config(server.app, log_level="error", lifespan="off"))
        thread = Thread(target=web.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        web.should_exit = True
        thread.join()


@pytest.fixture
def passwords(url: str) -> dict[str, str]:
    """User -> password: dan may create asset events, ann may only read."""
    assert httpx.get(f"{url}/api/v2/version", timeout=60).status_code == 200
    return dict(SimpleAuthManager.get_passwords())


def report(version: int, *, moved: bool, table: str = TABLE) -> JobReport:
    rows = RowCounts(read=3, applied=2, unchanged=1)
    facts: dict[str, Any] = {"version": version, "certified_version": version, "certified_moved": moved, "rows": rows}
    job, interval = Job.BRONZE_INGEST.value, day()
    return JobReport(
        job=job, table=table, outcome=Outcome.COMMITTED, message="", interval=interval, run_id=RUN, **facts
    )


def events(server: TestClient) -> list[dict[str, Any]]:
    query = {"name_pattern": TABLE, "order_by": "timestamp"}
    found: list[dict[str, Any]] = server.get(
        "/api/v2/assets/events", params=query, headers=login(server, "ann")
    ).json()["asset_events"]
    return found


def test_a_certified_version_is_announced_once_with_its_day_and_rows(
    server: TestClient, url: str, passwords: dict[str, str], tmp_path: Path
) -> None:
    Deliver(tmp_path / "landing")("a.json")
    spec = bronze_spec(table=TABLE, source={"landing": "orders", "files": "*", "format": "json"})
    version = commit_batch(tmp_path, tmp_path / "landing", spec, day(), RUN).version
    paths, before = LakehousePaths(tmp_path), len(events(server))
    by_password = AirflowAccess(url=url, login="dan", password=passwords["dan"])
    by_token = AirflowAccess(url=url, token=login(server, "dan")["Authorization"].removeprefix("Bearer "))

    line = "asset event: bronze.weather version 1 for 2013-01-01: 3 rows read, 2 rows applied, 1 row unchanged"
    assert announce([report(version, moved=True)], by_password, paths) == ([line], "")
    plain, keyed = events(server)[before:]
    assert [event["partition_key"] for event in (plain, keyed)] == [None, "2013-01-01T00:00:00"]
    extra = plain["extra"]
    assert keyed["extra"] == extra
    assert (extra["version"], extra["run_id"], extra["batch_seq"]) == (version, RUN, 1)
    assert extra["interval_start"] == "2013-01-01T00:00:00+00:00"
    assert extra["rows"] == {"read": 3, "applied": 2, "unchanged": 1}

    assert announce([report(version, moved=False)], by_token, paths) == ([], ""), "a run without new data"
    later, line = report(version + 6, moved=False), "asset event: bronze.weather version 7: certified"
    assert announce([later], by_token, paths) == ([line], ""), "it was not announced before"
    assert announce([later], by_token, paths) == ([], "")
    unknown = report(1, moved=True, table="bronze.weathe")
    line = "no asset event for bronze.weathe: no DAG of this Airflow names it"
    assert announce([unknown], by_token, paths) == ([line], "")


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
        lines, problem = announce([report(9, moved=True)], access, LakehousePaths(tmp_path))
        assert lines == []
        assert problem.startswith(f"Airflow at {access.url} was not told of all certified versions (")
        assert reason in problem
        assert "\n" not in problem
        assert "wr0ng" not in problem


@pytest.mark.parametrize("given", [{}, {"login": "dan", "token": "t"}])
def test_who_asks_is_either_a_user_or_a_token(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match='either "login" and "password", or "token"'):
        AirflowAccess(url="http://airflow", **given)
