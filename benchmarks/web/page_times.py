"""``python -m benchmarks.web.page_times LAKE TIMES PATH...``: the time of each request for a page.

It asks Airflow's own application, as a user who has logged in, and prints JSON: path -> list of milliseconds and
CPU-milliseconds.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.aged_lake import environment
from include.settings import PROJECT

USER = "ann"


def measure_pages(lake: Path, times: int, pages: list[str]) -> dict[str, list[tuple[float, float]]]:
    """Return page -> (milliseconds, CPU-milliseconds) of each request, the first one included."""
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(environment(lake))
        os.environ.update(
            {
                "AIRFLOW_HOME": home,
                "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "plugins"),
                "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
                "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:viewer",
                "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
                "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
            }
        )
        return _times(times, pages)


def _times(times: int, pages: list[str]) -> dict[str, list[tuple[float, float]]]:
    # Airflow reads its settings when it is imported.
    from airflow import settings
    from airflow.api_fastapi.app import create_app
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
    from airflow.models import import_all_models
    from airflow.models.base import Base
    from fastapi.testclient import TestClient

    import_all_models()  # type: ignore[no-untyped-call]
    Base.metadata.create_all(settings.engine)
    server = TestClient(create_app("core"))
    body = {"username": USER, "password": SimpleAuthManager.get_passwords()[USER]}
    headers = {"Authorization": f"Bearer {server.post('/auth/token', json=body).json()['access_token']}"}
    times_ms: dict[str, list[tuple[float, float]]] = {page: [] for page in pages}
    for _ in range(times):
        for page, of_page in times_ms.items():
            started, started_cpu = time.perf_counter(), time.process_time()
            answer = server.get(page, headers=headers)
            wall, cpu = time.perf_counter() - started, time.process_time() - started_cpu
            of_page.append((round(1000 * wall, 1), round(1000 * cpu, 1)))
            if answer.status_code != 200:
                raise SystemExit(f"{page}: {answer.status_code} {answer.text[:500]}")
    return times_ms


if __name__ == "__main__":
    print(json.dumps(measure_pages(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])))  # noqa: T201
