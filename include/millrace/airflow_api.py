"""A client of the public API of an Airflow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from millrace.contracts.airflow_access import AirflowAccess

_TIMEOUT_S = 60


@contextmanager
def airflow_api(access: AirflowAccess) -> Iterator[httpx.Client]:
    """Yield a client with a token: the given one, or one that Airflow makes for the user and the password.

    Raises:
        httpx.HTTPError: Airflow does not answer, or refuses the login.
    """
    with httpx.Client(base_url=access.url, timeout=_TIMEOUT_S) as client:
        token = access.token.get_secret_value()
        if not token:
            login = {"username": access.login, "password": access.password.get_secret_value()}
            token = client.post("/auth/token", json=login).raise_for_status().json()["access_token"]
        client.headers["Authorization"] = f"Bearer {token}"
        yield client
