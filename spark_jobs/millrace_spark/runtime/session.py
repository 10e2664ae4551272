"""The only place that builds Spark sessions.

The same job file runs under spark-submit (its launch settings come from `millrace.spark_conf.launch_conf`) and, with
`SPARK_REMOTE` set, against a warm Spark Connect server that was started with the same settings.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from millrace.errors import MillraceError, SparkDiedError, SparkUnavailableError
from millrace.spark_conf import LOG_STORES, SESSION
from millrace.spark_location import require_server
from millrace_spark.spark_errors import is_server_gone

if TYPE_CHECKING:
    from pyspark.sql.connect.client import DefaultChannelBuilder

PATIENT_RETRIES = 5
"""Retries of a request to the Spark Connect server: about 17 s. A restarted server has none of our sessions, so the
client's default of ten minutes would be lost time."""

RELEASE_TIMEOUT_S = 5
"""How long the client waits for the server to release results that were read. Sometimes such a request has no answer at
the end of a session; without a deadline the driver would never end (Spark 4.1.3, like SPARK-55362)."""

_open_sessions: list[SparkSession] = []
"""This driver's open sessions on a Spark Connect server; a killed driver asks the server to stop their work."""


@contextmanager
def own_session(conf: Mapping[str, str], *, logs_errors: bool = True) -> Iterator[SparkSession]:
    """Open a separate session, so that a setting for one write never affects another write.

    The first session starts Spark, or connects to the server. All frames and views of a batch must come from it: a
    frame of another session commits without a txn, a token or an error.

    Args:
        conf: the settings.
        logs_errors: false if errors of Spark have values of restricted columns: its own Spark logs none of them, from
            then on. A Spark Connect server has a log of its own.

    Raises:
        SparkUnavailableError: the Spark Connect server does not answer.
        SparkDiedError: it died while it worked for the session.
        MillraceError: the session lacks the log stores, without which acknowledged commits can be lost.
    """
    settings = {**SESSION, **conf}
    session = _connect(settings) if _remote() else _open(settings)
    if not (logs_errors or _remote()):
        session.sparkContext.setLogLevel("OFF")
    try:
        require_log_stores(session)
        yield session
    except PySparkException as error:
        if not (_remote() and is_server_gone(error)):
            raise
        # No server is left to release the session: a try would take as long again.
        session.release_session_on_close = False  # type: ignore[attr-defined]
        where, cause = _without_token(os.environ["SPARK_REMOTE"]), error.getCondition() or "it does not answer"
        raise SparkDiedError(
            f"Spark Connect at {where} died, or was restarted, while it worked for this job ({cause})\n"
            "Nothing is lost: start it (`make up`), then retry."
        ) from error
    finally:
        if _remote():
            _end(session)


def freeze(df: DataFrame) -> DataFrame:
    """Compute the frame's rows once; the executors keep them as long as something refers to them.

    Raises:
        MillraceError: another session is active: on Spark Connect the copy would belong to that session.
    """
    checkpointed = df.localCheckpoint()
    if _remote() and checkpointed.sparkSession is not df.sparkSession:
        raise MillraceError("Rows can be frozen in the outermost session only; close the inner session first.")
    return checkpointed


def interrupt(session: SparkSession) -> None:
    """Stop the work of the session; in a driver's own Spark, all work.

    A driver's own Spark finds the work of a session by a tag of the thread, but the threads in which Delta compacts
    files do not have that tag (Delta 4.4).
    """
    if _remote():
        session.interruptAll()
    else:
        session.sparkContext.cancelAllJobs()


def require_log_stores(spark: SparkSession) -> None:
    """Refuse a session that could lose acknowledged commits.

    Raises:
        MillraceError: a log store setting is missing; the message names it.
    """
    for key, value in LOG_STORES.items():
        if spark.conf.get(key, "") != value:
            raise MillraceError(
                f"This Spark session has no {key}={value}: two drivers could both win one table version (ADR 0003)\n"
                "Start it with the settings of include/millrace/spark_conf.py."
            )


def _remote() -> bool:
    return "SPARK_REMOTE" in os.environ


def _open(conf: Mapping[str, str]) -> SparkSession:
    # Installs the conversion of Delta's errors: without it a conflict is a bare Py4JJavaError.
    import delta.exceptions  # noqa: F401

    session = SparkSession.builder.getOrCreate().newSession()
    for key, value in conf.items():
        session.conf.set(key, value)
    return session


def _connect(conf: Mapping[str, str]) -> SparkSession:
    # Imported here: a driver of its own needs no client. The first one installs the conversion of Delta's errors:
    # without it a conflict is a plain SparkConnectGrpcException.
    import delta.connect  # noqa: F401
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    remote = os.environ["SPARK_REMOTE"]
    require_server(remote)
    signal.signal(signal.SIGTERM, _interrupt_and_exit)
    try:
        # The builder does the same for an address: functions of pyspark read it.
        os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
        session = cast(
            SparkSession, ConnectSession.builder.channelBuilder(_channel(remote)).config(map={**conf}).create()
        )
    except PySparkException as error:
        raise SparkUnavailableError(
            f"Spark Connect at {_without_token(remote)} does not answer: {error}\nStart it (`make up`), then retry."
        ) from error
    session.client.set_retry_policies([DefaultPolicy(max_retries=PATIENT_RETRIES)])  # type: ignore[operator]
    _open_sessions.append(session)
    return session


def _channel(remote: str) -> DefaultChannelBuilder:
    """Return a channel to the server.

    Its deadline for releases is set in gRPC, because pyspark has no such setting. pyspark sends a token over TLS to all
    hosts but `localhost`; an address with `use_ssl=false` says that nobody else can read what the network carries.
    """
    from pyspark.sql.connect.client import DefaultChannelBuilder

    release = {"service": "spark.connect.SparkConnectService", "method": "ReleaseExecute"}
    deadlines = {"methodConfig": [{"name": [release], "timeout": f"{RELEASE_TIMEOUT_S}s"}]}
    channel = DefaultChannelBuilder(remote, [("grpc.service_config", json.dumps(deadlines))])
    if channel.getDefault(channel.PARAM_USE_SSL, "") == "false" and channel.token:
        channel.set("authorization", f"Bearer {channel.token}")
        channel.set(channel.PARAM_TOKEN, None)
    return channel


def _end(session: SparkSession) -> None:
    """End the session, and prevent a second close of its client.

    When the garbage collector deletes the session, in any thread, pyspark closes its client again and waits for the
    requests of all other sessions: a deadlock (SPARK-55362).
    """
    _open_sessions.remove(session)
    session.stop()
    cast(Any, session).client.close = lambda: None


def _without_token(remote: str) -> str:
    return remote.split("/;")[0]


def _interrupt_and_exit(signum: int, _frame: FrameType | None) -> None:
    """Ask the server to stop the job's work before exit, because the end of a client does not stop it."""
    for session in _open_sessions:
        interrupt(session)
    raise SystemExit(128 + signum)
