"""The credentials for the bucket of the tables, from an Airflow connection.

They are set in the environment of a task's process, where boto3, delta-rs and Spark read them (`docs/guides/
read-from-s3.md`), and its driver inherits them. They are on no command line, and Airflow masks them in logs.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

from millrace.new_files import restrict_new_files
from millrace.settings import Settings

_VARIABLE = {
    "endpoint_url": "AWS_ENDPOINT_URL_S3",
    "region_name": "AWS_DEFAULT_REGION",
    "aws_session_token": "AWS_SESSION_TOKEN",
    "profile_name": "AWS_PROFILE",
}
"""Field of the connection's extra, as Amazon's provider names it -> variable of the environment."""

_IDENTITY = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE")

_prepared: set[int] = set()
"""The id of this process, once it was prepared."""


def prepare_process() -> Settings:
    """Give this process access to the store of the tables, and others the rights to its files that the settings allow.

    Every operator that reads or writes tables calls this first.

    Returns:
        The settings.

    Raises:
        AirflowFailException: the connection that the settings name does not exist, or has unknown fields.
    """
    settings = Settings()
    restrict_new_files(settings)
    reach_store(os.environ, settings)
    _prepared.add(os.getpid())
    return settings


def may_fork() -> bool:
    """Whether a fork of this process could use delta-rs: not after a task of Millrace has worked in it.

    Airflow runs each task in a process of its own, but `dag.test()` runs all of them in one.
    """
    return os.getpid() not in _prepared


def reach_store(environment: MutableMapping[str, str], settings: Settings) -> None:
    """Set the variables of the connection in `environment`; change nothing where the settings name no connection.

    Raises:
        AirflowFailException: as `prepare_process`.
    """
    conn_id = settings.s3_connection
    if not conn_id:
        return
    try:
        connection = Connection.get(conn_id)
    except AirflowNotFoundException:
        raise AirflowFailException(
            f"Airflow has no connection {conn_id!r}, which LAKEHOUSE_S3_CONNECTION names for the tables' bucket.\n"
            "Create it under Admin -> Connections: type Generic, the access key id as login, the secret key as "
            'password, and as extra {"endpoint_url": ..., "region_name": ...}.'
        ) from None
    extra = connection.extra_dejson
    if unknown := sorted(set(extra) - set(_VARIABLE)):
        raise AirflowFailException(
            f"The connection {conn_id!r} has {', '.join(unknown)} in its extra, which Millrace does not know.\n"
            f"It knows {', '.join(_VARIABLE)}; put other settings of boto3 into a profile, or the environment."
        )
    keys = {"AWS_ACCESS_KEY_ID": connection.login, "AWS_SECRET_ACCESS_KEY": connection.password}
    variables = {**keys, **{_VARIABLE[name]: value for name, value in extra.items()}}
    variables = {name: str(value) for name, value in variables.items() if value}
    # A session token or profile of another identity would not fit these keys.
    if not variables.keys().isdisjoint(_IDENTITY):
        for name in _IDENTITY:
            environment.pop(name, None)
    environment.update(variables)
