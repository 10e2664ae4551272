"""Credentials of the bucket that the tables lie in, from an Airflow connection.

They go into the environment of a task's process, where boto3, delta-rs and Spark look for them (`docs/guides/
read-from-s3.md`), and are inherited by its driver. They are on no command line; Airflow masks them in logs.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

from include.settings import Settings

_VARIABLE = {
    "endpoint_url": "AWS_ENDPOINT_URL_S3",
    "region_name": "AWS_DEFAULT_REGION",
    "aws_session_token": "AWS_SESSION_TOKEN",
    "profile_name": "AWS_PROFILE",
}
"""Field of the connection's extra -> the variable that says the same; names are those of Amazon's provider."""

_WHO = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE")


def task_settings() -> Settings:
    """The installation's settings; this process can reach the store of its tables from here on.

    Every operator that reads or writes tables begins with it.

    Raises:
        AirflowFailException: there is no such connection as the settings name, or it says what nobody here knows.
    """
    settings = Settings()
    reach_store(os.environ, settings)
    return settings


def reach_store(environment: MutableMapping[str, str], settings: Settings) -> None:
    """Put what the connection says into an environment; without a connection, leave the environment as it is.

    Raises:
        AirflowFailException: as `task_settings`.
    """
    if not settings.s3_connection:
        return
    said = _variables(settings.s3_connection)
    # A session token or a profile of somebody else would not go with these keys.
    for name in _WHO if set(_WHO) & set(said) else ():
        environment.pop(name, None)
    environment.update(said)


def _variables(conn_id: str) -> dict[str, str]:
    try:
        connection = Connection.get(conn_id)
    except AirflowNotFoundException:
        raise AirflowFailException(
            f"Airflow has no connection {conn_id!r}, which LAKEHOUSE_S3_CONNECTION names for the bucket of the tables. "
            f"Create it: airflow connections add {conn_id} --conn-type aws --conn-login <access key id> "
            '--conn-password <secret> --conn-extra \'{"endpoint_url": ..., "region_name": ...}\''
        ) from None
    extra = connection.extra_dejson
    if unknown := sorted(set(extra) - set(_VARIABLE)):
        raise AirflowFailException(
            f"The connection {conn_id!r} has {', '.join(unknown)} in its extra, which Millrace does not know. "
            f"It knows {', '.join(_VARIABLE)}; whatever else boto3 knows goes into a profile, or the environment."
        )
    keys = {"AWS_ACCESS_KEY_ID": connection.login, "AWS_SECRET_ACCESS_KEY": connection.password}
    said = {**keys, **{_VARIABLE[name]: value for name, value in extra.items()}}
    return {name: str(value) for name, value in said.items() if value}
