"""A client of the public API of an Airflow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

_TIMEOUT_S = 60


@contextmanager
def airflow_api(url: str, login: str, password: str) -> Iterator[httpx.Client]:
    """Yield a client that has logged in.

    Args:
        url: the address of Airflow's web server.
        login: a user.
        password: the user's password.

    Raises:
        httpx.HTTPError: Airflow does not answer, or refuses the login.
    """
    with httpx.Client(base_url=url, timeout=_TIMEOUT_S) as client:
        answer = client.post("/auth/token", json={"username": login, "password": password}).raise_for_status()
        client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
        yield client
