"""A client of Airflow's own public API, for what a task cannot do by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from airflow.sdk import Connection
from pydantic import SecretStr

from millrace.airflow_api import airflow_api
from millrace.contracts.airflow_access import AirflowAccess

CONN_ID = "airflow_api"
"""The connection to Airflow itself: host (a URL), login and password of a user who may clear tasks."""

HOW_TO_CONNECT = (
    f"Create the connection {CONN_ID}: type Generic, the URL of Airflow as host, login and password of a user who may "
    "read the answers to required actions, and clear tasks."
)


@contextmanager
def own_airflow_api() -> Iterator[httpx.Client]:
    """Yield a client that has logged in.

    Raises:
        AirflowNotFoundException: there is no connection to Airflow's API.
        httpx.HTTPError: Airflow does not answer, or refuses the login.
    """
    connection = Connection.get(CONN_ID)
    secret = SecretStr(connection.password or "")
    with airflow_api(AirflowAccess(url=str(connection.host), login=str(connection.login), password=secret)) as client:
        yield client
