"""The one place that builds Spark sessions.

The same job file runs under spark-submit (its launch settings come from `include.spark_conf.launch_conf`) and, with
`SPARK_REMOTE` set, against a warm Spark Connect server that was started with the same settings.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from include.errors import MillraceError, SparkUnavailableError
from include.spark_conf import LOG_STORES, SESSION

# Installs the conversion of Delta's errors: without it a conflict is a bare Py4JJavaError (classic) or a plain
# SparkConnectGrpcException (Connect).
if is_remote():
    import delta.connect
else:
    import delta.exceptions  # noqa: F401


DEFAULT_PORT = 15002
"""Where a Spark Connect server listens when its address names no port."""


def spark_session() -> SparkSession:
    """The session of this driver, with every setting that Millrace relies on.

    Raises:
        SparkUnavailableError: the Spark Connect server does not answer.
        MillraceError: the session lacks the log stores, without which acknowledged commits can vanish.
    """
    if is_remote():
        _interrupt_on_sigterm()
    spark = _connect() if is_remote() else SparkSession.builder.getOrCreate()
    _set(spark, SESSION)
    require_log_stores(spark)
    return spark


@contextmanager
def own_session(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session apart from every other, so that a setting for one write can never reach another one.

    All frames and views of a batch must be built from it: a frame of another session commits with no txn, no token
    and no error.
    """
    session = _connect() if is_remote() else spark.newSession()
    _set(session, {**SESSION, **conf})
    try:
        yield session
    finally:
        if is_remote():
            session.stop()


def require_log_stores(spark: SparkSession) -> None:
    """Refuse a session that could lose acknowledged commits.

    Raises:
        MillraceError: a log store setting is missing; the message names it.
    """
    for key, value in LOG_STORES.items():
        if spark.conf.get(key, "") != value:
            msg = (
                f"This Spark session has no {key}={value}: two drivers could both win one table version (ADR 0003). "
                "Start it with the settings of include/spark_conf.py."
            )
            raise MillraceError(msg)


def _connect() -> SparkSession:
    remote = os.environ["SPARK_REMOTE"]
    _require_listening(remote)
    try:
        session: SparkSession = SparkSession.builder.remote(remote).create()
    except PySparkException as error:
        msg = f"Spark Connect at {_without_token(remote)} does not answer: {error}. Start it (`make up`), then retry."
        raise SparkUnavailableError(msg) from error
    return session


def _require_listening(remote: str) -> None:
    """Fail at once where nothing listens; the client itself would go on trying for minutes."""
    server = urlsplit(remote)
    try:
        socket.create_connection((server.hostname, server.port or DEFAULT_PORT), timeout=5).close()
    except OSError as error:
        msg = f"Nothing listens at {_without_token(remote)} ({error}). Start the Spark server (`make up`), then retry."
        raise SparkUnavailableError(msg) from error


def _set(spark: SparkSession, conf: Mapping[str, str]) -> None:
    for key, value in conf.items():
        spark.conf.set(key, value)


def _without_token(remote: str) -> str:
    return remote.split("/;")[0]


def _interrupt_on_sigterm() -> None:
    """A killed client does not stop what the server runs for it, so the job asks the server to stop first."""

    def interrupt(signum: int, _frame: FrameType | None) -> None:
        active = SparkSession.getActiveSession()
        if active is not None:
            active.interruptAll()
        raise SystemExit(128 + signum)

    signal.signal(signal.SIGTERM, interrupt)
