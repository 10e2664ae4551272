"""`lakehouse run` announces certified versions: real requests to Airflow's real API server."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient

from include.cli.runs.asset_events import create_events
from include.contracts.job.args import Job
from include.contracts.job.report import JobReport, RowCounts
from include.errors import Outcome
from include.paths import LakehousePaths
from tests.support.airflow.logins import login
from tests.support.deliveries import Deliver
from tests.support.documents.specs import bronze_spec
from tests.support.ledger.delta_tables import day
from tests.support.ledger.small_lake import commit_batch

TABLE = "bronze.weather"
RUN = "cli-1"

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def version(tmp_path: Path) -> int:
    """The version of a batch that the lakehouse in `tmp_path` has."""
    Deliver(tmp_path / "landing")("a.json")
    spec = bronze_spec(table=TABLE, source={"landing": "orders", "files": "*", "format": "json"})
    return commit_batch(tmp_path, tmp_path / "landing", spec, day(), RUN).version


@pytest.fixture
def api(server: TestClient) -> httpx.Client:
    """The API, logged in as a user who may create asset events."""
    server.headers.update(login(server, "dan"))
    return server


def report(version: int, *, moved: bool, table: str = TABLE) -> JobReport:
    rows = RowCounts(read=3, applied=2, unchanged=1)
    facts = {"version": version, "certified_version": version, "certified_moved": moved, "rows": rows}
    job, interval = Job.BRONZE_INGEST.value, day()
    return JobReport(
        job=job, table=table, outcome=Outcome.COMMITTED, message="", interval=interval, run_id=RUN, **facts
    )


def extras(api: httpx.Client) -> list[dict[str, object]]:
    found = api.get("/api/v2/assets/events", params={"name_pattern": TABLE, "order_by": "timestamp"})
    return [event["extra"] for event in found.json()["asset_events"]]


def test_a_certified_version_is_announced_once_with_its_day_and_rows(
    api: httpx.Client, version: int, tmp_path: Path
) -> None:
    paths, before = LakehousePaths(tmp_path), len(extras(api))
    (line,) = create_events(api, [report(version, moved=True)], paths)
    assert line == "asset event: bronze.weather version 1 for 2013-01-01: 3 rows read, 2 rows applied, 1 row unchanged"
    assert list(create_events(api, [report(version, moved=False)], paths)) == [], "a run without new data"
    (extra,) = extras(api)[before:]
    assert (extra["version"], extra["run_id"], extra["batch_seq"]) == (version, RUN, 1)
    assert extra["interval_start"] == "2013-01-01T00:00:00+00:00"
    assert extra["rows"] == {"read": 3, "applied": 2, "unchanged": 1}


def test_a_version_that_was_not_announced_is_announced_by_the_next_run(
    api: httpx.Client, version: int, tmp_path: Path
) -> None:
    later = report(version + 6, moved=False)
    (line,) = create_events(api, [later], LakehousePaths(tmp_path))
    assert line == "asset event: bronze.weather version 7: certified"
    assert list(create_events(api, [later], LakehousePaths(tmp_path))) == []


def test_a_table_that_no_dag_names_is_named(api: httpx.Client, tmp_path: Path) -> None:
    lines = create_events(api, [report(1, moved=True, table="bronze.weathe")], LakehousePaths(tmp_path))
    assert list(lines) == ["no asset event for bronze.weathe: no DAG of this Airflow names it"]
