"""The metrics on Airflow's API server: who reads them, in which format; and Prometheus, which scrapes them."""

from __future__ import annotations

import json
import logging
import subprocess
import threading
from pathlib import Path

import httpx
import pytest
import uvicorn
from fastapi.testclient import TestClient
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from embedded.home import free_port
from lakehouse_airflow.ui.links import lakehouse_path
from millrace.settings import Settings
from tests.support.airflow.logins import login
from tests.support.commands import require_command
from tests.support.waiting import wait_for

pytestmark = pytest.mark.usefixtures("shown_lakehouse")

METRICS = lakehouse_path("metrics")
TOKEN = "s3cret-Token"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


@pytest.fixture
def token_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the token of the metrics."""
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    monkeypatch.setenv("LAKEHOUSE_METRICS_TOKEN_FILE", str(file))
    return file


def bearer(token: str, **headers: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **headers}


def test_without_a_token_nobody_reads_them(server: TestClient, token_file: Path) -> None:
    for text in ("", " \n"):
        token_file.write_text(text)
        answer = server.get(METRICS, headers=bearer(""))
        assert (answer.status_code, "set LAKEHOUSE_METRICS_TOKEN" in answer.text) == (403, True)
    for spoil in (lambda: token_file.write_bytes(b"\xff"), token_file.unlink):
        spoil()
        answer = server.get(METRICS, headers=bearer(TOKEN))
        assert (answer.status_code, "cannot be read" in answer.text) == (403, True)


@pytest.mark.usefixtures("token_file")
def test_only_their_own_token_opens_them(server: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = [{}, bearer(""), bearer("s3cret"), bearer(f"{TOKEN}é"), {"Authorization": TOKEN}, login(server, "ann")]
    for headers in wrong:
        encoded = {name: text.encode() for name, text in headers.items()}
        answer = server.get(METRICS, headers=encoded)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert TOKEN not in answer.text
    answer = server.get(METRICS, headers=bearer(TOKEN))
    assert (answer.status_code, "millrace_table_rows{" in answer.text) == (200, True)
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert TOKEN not in caplog.text
    assert server.get(lakehouse_path("tables"), headers=bearer(TOKEN)).status_code == 403, "it opens nothing else"


def test_a_new_token_needs_no_restart_and_the_variable_comes_before_the_file(
    server: TestClient, token_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for token in ("sécond", "second"):
        token_file.write_text(token)
        assert server.get(METRICS, headers={"Authorization": f"Bearer {token}".encode()}).status_code == 200
    monkeypatch.setenv("LAKEHOUSE_METRICS_TOKEN", "third")
    assert [server.get(METRICS, headers=bearer(token)).status_code for token in ("second", "third")] == [401, 200]
    assert "third" not in repr(Settings())
    assert "third" not in str(Settings().environment())


@pytest.mark.usefixtures("token_file")
def test_a_scraper_that_accepts_openmetrics_gets_it(server: TestClient) -> None:
    answer = server.get(METRICS, headers=bearer(TOKEN, Accept=f"{OPENMETRICS},text/plain;version=0.0.4;q=0.5"))
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert len(list(text_string_to_metric_families(answer.text))) > 20


@pytest.mark.usefixtures("token_file")
def test_a_lakehouse_that_cannot_be_read_fails_the_scrape(server: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_TABLES", "/nowhere")
    answer = server.get(METRICS, headers=bearer(TOKEN))
    assert (answer.status_code, "no folder of table specs at /nowhere" in answer.text) == (503, True)


@pytest.mark.slow
def test_prometheus_scrapes_them_and_answers_queries(server: TestClient, token_file: Path, tmp_path: Path) -> None:
    require_command("prometheus", package="prometheus")
    scraped, own = free_port(), free_port()
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [
            {
                "job_name": "millrace",
                "metrics_path": METRICS,
                "authorization": {"credentials_file": str(token_file)},
                "static_configs": [{"targets": [f"127.0.0.1:{scraped}"]}],
            }
        ],
    }
    (tmp_path / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
    web = uvicorn.Server(uvicorn.Config(server.app, port=scraped, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=web.run)
    thread.start()
    command = [
        *("prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"),
        f"--web.listen-address=127.0.0.1:{own}",
    ]
    prometheus = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: query(own, "up") == {"": 1.0})
        assert query(own, 'millrace_table_rows{table="bronze.orders"}') == {"bronze.orders": 24}
        assert query(own, "millrace_table_newest_version - millrace_table_certified_version > 0") == {
            "silver.orders": 1
        }
        assert query(own, 'sum by (table) (millrace_table_condition{condition="refused"}) == 1') == {"silver.orders": 1}
        assert query(own, 'sum(millrace_rows_total{action="applied", layer="bronze"})') == {"": 28}
    finally:
        prometheus.terminate()
        web.should_exit = True
        prometheus.wait(30)
        thread.join(30)


def query(port: int, promql: str) -> dict[str, float]:
    """Return table -> value of a query; nothing while Prometheus does not answer."""
    try:
        answer = httpx.get(f"http://127.0.0.1:{port}/api/v1/query", params={"query": promql})
        answer.raise_for_status()
    except httpx.HTTPError:
        return {}
    results = answer.json()["data"]["result"]
    return {each["metric"].get("table", ""): float(each["value"][1]) for each in results}
