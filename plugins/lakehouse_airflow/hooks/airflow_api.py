"""A client of Airflow's public API, for what a task cannot do by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from airflow.sdk import Connection

CONN_ID = "airflow_api"
"""The connection to Airflow itself: host (a URL), login and password of a user who may clear tasks."""

_TIMEOUT_S = 60


@contextmanager
def airflow_api() -> Iterator[httpx.Client]:
    """Yield a client that has logged in.

    Raises:
        AirflowNotFoundException: there is no connection to Airflow's API.
        httpx.HTTPError: Airflow does not answer, or refuses the login.
    """
    connection = Connection.get(CONN_ID)
    login = {"username": connection.login, "password": connection.password}
    with httpx.Client(base_url=str(connection.host), timeout=_TIMEOUT_S) as client:
        token = client.post("/auth/token", json=login).raise_for_status().json()["access_token"]
        client.headers["Authorization"] = f"Bearer {token}"
        yield client
