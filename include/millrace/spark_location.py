"""Where Spark is, and the job files: the packages of this Python, and the port of a Spark Connect server."""

from __future__ import annotations

import socket
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from millrace.errors import SparkUnavailableError

CONNECT = "sc://"
"""How the address of a Spark Connect server begins."""

_CONNECT_PORT = 15002
_TIMEOUT_S = 3.0


def spark_home() -> Path:
    """Return the folder of the installed PySpark, without importing it.

    Raises:
        SparkUnavailableError: this Python has no PySpark.
    """
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkUnavailableError("pyspark is not installed in this Python", "Install `millrace[spark]` into it.")
    return Path(spec.origin).parent


def data_plane() -> Path:
    """Return the folder of the package `millrace_spark`, without importing it.

    Raises:
        SparkUnavailableError: this Python has no such package.
    """
    spec = find_spec("millrace_spark")
    if spec is None or spec.origin is None:
        raise SparkUnavailableError("the package millrace_spark is not installed in this Python")
    return Path(spec.origin).parent


def job_file(application: str) -> str:
    """Return the file of a job.

    Args:
        application: its path within the package `millrace_spark`.

    Raises:
        SparkUnavailableError: this Python has no such package.
    """
    return str(data_plane() / application)


def require_server(remote: str) -> None:
    """Check that a server listens at an `sc://` address; a Spark client itself would go on trying for minutes.

    Raises:
        SparkUnavailableError: nothing listens there.
    """
    address = urlsplit(remote)
    host, port = address.hostname or "localhost", address.port or _CONNECT_PORT
    try:
        socket.create_connection((host, port), _TIMEOUT_S).close()
    except OSError as error:
        raise SparkUnavailableError(
            f"No Spark Connect server answers at {host}:{port} ({error})",
            "Start it (`make up`), then retry; or name another one, in SPARK_REMOTE or in the Airflow connection.",
        ) from error
