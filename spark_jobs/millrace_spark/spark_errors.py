"""What an error of Spark says: its cause without the stack traces of its JVM, and whether a process of Spark died."""

from __future__ import annotations

import re

from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from millrace.contracts.restricted import RESTRICTED
from millrace.errors import SparkDiedError

_CAUSE = re.compile(r"^(?:Caused by)?: [\w.$]+(?:: |$)|\(TID \d+\) \([^()]*\): (?:[\w.$]+: )?", re.MULTILINE)
_DEAD_EXECUTOR = re.compile(r"exited caused by one of the running tasks|java\.lang\.OutOfMemoryError")
"""What Spark says of an executor that ended at its task, or whose task got no memory."""

_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*\](?= )")
"""What an error of Spark begins with, such as `[CAST_INVALID_INPUT]`."""

_RESTARTED_SERVER = (
    "INVALID_HANDLE.SESSION_CHANGED",
    "INVALID_HANDLE.SESSION_CLOSED",
    "INVALID_HANDLE.SESSION_NOT_FOUND",
    "NO_ACTIVE_SESSION",
    "RESPONSE_ALREADY_RECEIVED",
)
"""The client's error conditions when another server answers than the one it began with."""

_TRACE = re.compile(r"^\s+at \S+\(|^JVM stacktrace:|^Driver stacktrace:", re.MULTILINE)


def cause_in(message: str) -> str:
    r"""Return the innermost cause in a message: the errors around it only say that a task or a write has failed.

    >>> trace = "\n\nJVM stacktrace:\norg.apache.spark.SparkException\n\tat org.apache.spark.Task.run(Task.scala:147)"
    >>> cause_in(f"[UNRESOLVED_COLUMN] There is no column x.{trace}")
    '[UNRESOLVED_COLUMN] There is no column x.'
    >>> caused = "Caused by: org.apache.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.\n\tat a.B(C:1)"
    >>> cause_in(f"[TASK_WRITE_FAILED] Task failed while writing rows to /lake.{trace}\n{caused}")
    '[DIVIDE_BY_ZERO] Division by zero.'
    >>> lost = "Lost task 0.0 in stage 3.0 (TID 4) (host executor driver): org.apache.SparkException: [TOO_LONG] 7.{}"
    >>> cause_in(f"Job aborted due to stage failure: Task 0 failed 1 times, most recent failure: {lost.format(trace)}")
    '[TOO_LONG] 7.'
    >>> cause_in("An error occurred while calling o9.save\n: java.io.IOException: full\n\tat a.B(C:1)")
    'full'
    """
    innermost = _CAUSE.split(message)[-1]
    return _TRACE.split(innermost)[0].strip()


def cause_of(error: BaseException) -> str:
    """Return the innermost cause in an error's message; its class if it has none.

    >>> cause_of(KeyError())
    'KeyError'
    """
    return cause_in(str(error)) or type(error).__name__


def without_values(error: str) -> str:
    """Return the text of an error that Spark or Great Expectations raised without what may be a value of a row.

    >>> without_values("[CAST_INVALID_INPUT] The value '12-34' of the type STRING cannot be cast to INT.")
    '[CAST_INVALID_INPUT] (restricted)'
    >>> without_values("['12-34'] is no int")
    '(restricted)'
    """
    condition = _CONDITION.match(error)
    return f"{condition[0]} {RESTRICTED}" if condition else RESTRICTED


def is_server_gone(error: BaseException) -> bool:
    """Whether the Spark Connect server died, or was restarted and does not have the session."""
    # Only the errors of the client have it, which a driver with a Spark of its own need not import.
    status = getattr(error, "getGrpcStatusCode", None)
    if status and status().name == "UNAVAILABLE":
        return True
    return isinstance(error, PySparkException) and (error.getCondition() or "") in _RESTARTED_SERVER


def is_death(error: BaseException) -> bool:
    """Whether the Spark server, the JVM of this driver or an executor died at its work.

    >>> is_death(RuntimeError("ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: ..."))
    True
    >>> is_death(RuntimeError("[DIVIDE_BY_ZERO] Division by zero."))
    False
    """
    if isinstance(error, SparkDiedError | Py4JNetworkError | ConnectionRefusedError) or is_server_gone(error):
        return True
    return bool(_DEAD_EXECUTOR.search(str(error)))
