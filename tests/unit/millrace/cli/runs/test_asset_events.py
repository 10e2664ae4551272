"""A version that Airflow was told of already is not told again, also while a run that it triggered waits."""

from __future__ import annotations

from pathlib import Path

import httpx

from millrace.cli.runs.asset_events import create_events
from millrace.contracts.job.report import JobReport
from millrace.errors import Outcome
from millrace.paths import LakehousePaths
from tests.support.ledger.delta_tables import day

TABLE = "silver.orders"


def test_airflow_is_asked_again_while_it_cannot_show_an_event_whose_run_waits(tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(f"{request.method} {request.url.path}")
        if request.url.path.endswith("/assets"):
            return httpx.Response(200, json={"assets": [{"name": TABLE, "id": 7}]})
        if len(asked) == 2:
            return httpx.Response(500, text="Internal Server Error")
        return httpx.Response(200, json={"asset_events": [{"extra": {"version": 3}}]})

    about = {"job": "silver_merge", "table": TABLE, "interval": day(1), "run_id": "x"}
    report = JobReport(**about, outcome=Outcome.NO_OP, message="nothing is new", certified_version=3)
    with httpx.Client(base_url="http://airflow", transport=httpx.MockTransport(answer)) as api:
        assert list(create_events(api, [report], LakehousePaths(tmp_path))) == []
    events = "GET /api/v2/assets/events"
    assert asked == ["GET /api/v2/assets", events, events], "no event is created"
