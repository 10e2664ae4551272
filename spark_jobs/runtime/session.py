"""The one place that builds Spark sessions.

The same job file runs under spark-submit (its launch settings come from `include.spark_conf.launch_conf`) and, with
`SPARK_REMOTE` set, against a warm Spark Connect server that was started with the same settings.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from include.errors import MillraceError, SparkUnavailableError
from include.spark_conf import LOG_STORES, SESSION
from include.spark_location import require_server

# Installs the conversion of Delta's errors: without it a conflict is a bare Py4JJavaError (classic) or a plain
# SparkConnectGrpcException (Connect).
if "SPARK_REMOTE" in os.environ:
    import delta.connect
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession as ConnectSession
else:
    import delta.exceptions  # noqa: F401


PATIENT_RETRIES = 5
"""How often a request to the Spark Connect server is tried again: about 17 s. A restarted server knows none of our
sessions, so the client's own default of ten minutes would only hang."""

RELEASE_ENDS_S = 5
"""How long the client waits to hear that the server forgets results which were read. Now and then such a request has no
answer at the end of a session; without a deadline the driver would never end (Spark 4.1.3, like SPARK-55362)."""

_OF_ANOTHER_SERVER = (
    "INVALID_HANDLE.SESSION_CHANGED",
    "INVALID_HANDLE.SESSION_CLOSED",
    "INVALID_HANDLE.SESSION_NOT_FOUND",
    "NO_ACTIVE_SESSION",
    "RESPONSE_ALREADY_RECEIVED",
)
"""What the client says when another server answers in the place of the one that it began with."""

_open_sessions: list[SparkSession] = []
"""What this driver has open on a Spark Connect server; a killed driver asks the server to stop what they run."""


@contextmanager
def own_session(conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session apart from every other, so that a setting for one write can never reach another one.

    The first one starts Spark, or finds the server. All frames and views of a batch must be built from it: a frame of
    another session commits with no txn, no token and no error.

    Raises:
        SparkUnavailableError: the Spark Connect server does not answer, or died while it worked for the session.
        MillraceError: the session lacks the log stores, without which acknowledged commits can vanish.
    """
    session = _connect({**SESSION, **conf}) if _remote() else _new_session({**SESSION, **conf})
    try:
        require_log_stores(session)
        yield session
    except PySparkException as error:
        if not (_remote() and _server_is_gone(error)):
            raise
        # There is nobody to release the session: to try would take as long again.
        session.release_session_on_close = False  # type: ignore[attr-defined]
        raise SparkUnavailableError(_gone_message(error)) from error
    finally:
        if _remote():
            _end(session)


def frozen(df: DataFrame) -> DataFrame:
    """The frame's rows as they are now, computed once and kept by the executors until nobody refers to them.

    Raises:
        MillraceError: another session is the active one: on Spark Connect the copy would belong to that one.
    """
    checkpointed = df.localCheckpoint()
    if _remote() and checkpointed.sparkSession is not df.sparkSession:
        raise MillraceError("Rows can be frozen in the outermost session only; close the other one first.")
    return checkpointed


def interrupt(session: SparkSession) -> None:
    """Stop what the session runs; on a driver of its own, whatever that runs.

    A driver's own Spark would know what a session runs by a tag of the thread, which the threads do not have in which
    Delta puts files together (Delta 4.4).
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
            msg = (
                f"This Spark session has no {key}={value}: two drivers could both win one table version (ADR 0003)\n"
                "Start it with the settings of include/spark_conf.py."
            )
            raise MillraceError(msg)


def _remote() -> bool:
    return "SPARK_REMOTE" in os.environ


def _new_session(conf: Mapping[str, str]) -> SparkSession:
    session = SparkSession.builder.getOrCreate().newSession()
    for key, value in conf.items():
        session.conf.set(key, value)
    return session


def _connect(conf: Mapping[str, str]) -> SparkSession:
    remote = os.environ["SPARK_REMOTE"]
    require_server(remote)
    signal.signal(signal.SIGTERM, _interrupt_and_exit)
    try:
        # As the builder does for an address: functions of pyspark look at it.
        os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
        session = cast(
            SparkSession, ConnectSession.builder.channelBuilder(_channel(remote)).config(map={**conf}).create()
        )
    except PySparkException as error:
        msg = f"Spark Connect at {_without_token(remote)} does not answer: {error}\nStart it (`make up`), then retry."
        raise SparkUnavailableError(msg) from error
    session.client.set_retry_policies([DefaultPolicy(max_retries=PATIENT_RETRIES)])  # type: ignore[operator]
    _open_sessions.append(session)
    return session


def _channel(remote: str) -> DefaultChannelBuilder:
    """To the server, with a deadline for releases: gRPC's own setting, since pyspark has none for it."""
    release = {"service": "spark.connect.SparkConnectService", "method": "ReleaseExecute"}
    deadlines = {"methodConfig": [{"name": [release], "timeout": f"{RELEASE_ENDS_S}s"}]}
    return DefaultChannelBuilder(remote, [("grpc.service_config", json.dumps(deadlines))])


def _end(session: SparkSession) -> None:
    """End the session, once and for all.

    When the garbage collector finds it, in whatever thread, pyspark closes its client again, and waits for the
    requests of all other sessions: a deadlock (SPARK-55362).
    """
    _open_sessions.remove(session)
    session.stop()
    cast(Any, session).client.close = lambda: None


def _server_is_gone(error: PySparkException) -> bool:
    """Whether the server died, or was started anew and knows nothing of the session."""
    if (error.getCondition() or "") in _OF_ANOTHER_SERVER:
        return True
    return isinstance(error, SparkConnectGrpcException) and error.getGrpcStatusCode().name == "UNAVAILABLE"


def _gone_message(error: PySparkException) -> str:
    where = _without_token(os.environ["SPARK_REMOTE"])
    return (
        f"Spark Connect at {where} died, or was started anew, while it worked for this job "
        f"({error.getCondition() or 'it does not answer'})\nNothing is lost: see that it runs (`make up`), then retry."
    )


def _without_token(remote: str) -> str:
    return remote.split("/;")[0]


def _interrupt_and_exit(signum: int, _frame: FrameType | None) -> None:
    """A killed client does not stop what the server runs for it, so the job asks the server to stop first."""
    for session in _open_sessions:
        interrupt(session)
    raise SystemExit(128 + signum)
