"""What people and monitors ask of Airflow's web server, for locust: `make viewers` runs this file.

A `Viewer` clicks through the pages, a few seconds each. The one `Monitor` asks Airflow's own API all the while, and
notes how long ago the scheduler has told that it lives.
"""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime

from locust import HttpUser, between, constant_pacing, task

PAGES = os.environ["VIEWED_PAGES"].split("\n")
"""The addresses of all pages."""

HEALTH = "/api/v2/monitor/health"
API = ("/api/v2/dags", "/api/v2/dags/flights/dagRuns", "/api/v2/dags/flights/dagRuns/~/taskInstances")
"""What Airflow's own pages ask most."""


class _User(HttpUser):
    abstract = True

    def on_start(self) -> None:
        """Log in, as Airflow's page for that does."""
        account = {"username": os.environ["VIEWER"], "password": os.environ["VIEWER_PASSWORD"]}
        token = self.client.post("/auth/token", json=account, name="log-in").json()["access_token"]
        self.client.cookies.set("_token", token)
        self.client.headers["Authorization"] = f"Bearer {token}"


class Monitor(_User):
    """One client of Airflow's own API."""

    fixed_count = 1
    wait_time = constant_pacing(0.5)

    @task
    def ask(self) -> None:
        """Ask each address once."""
        for path in API:
            self.client.get(path, name="Airflow's API")
        health = self.client.get(HEALTH, name="Airflow's API").json()
        told = datetime.fromisoformat(health["scheduler"]["latest_scheduler_heartbeat"])
        age = (datetime.now(UTC) - told).total_seconds() * 1000
        self.environment.events.request.fire(
            request_type="age", name="scheduler's heartbeat", response_time=age, response_length=0, exception=None
        )


class Viewer(_User):
    """A person who looks at any page, and reads for a few seconds."""

    wait_time = between(2, 8)

    @task
    def look(self) -> None:
        """Open a page."""
        page = random.choice(PAGES)
        with self.client.get(page, name="pages", catch_response=True) as answer:
            if answer.status_code == 503 and answer.headers.get("Refresh"):
                answer.success()  # Data Docs that are being built: the browser asks again
            elif not answer.ok:
                answer.failure(f"{answer.status_code}: {page}")
