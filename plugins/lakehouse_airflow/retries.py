"""Whether a failed task is retried, and after which delay: the type of the error alone decides."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.sdk import RetryDecision, RetryPolicy

from include.errors import (
    HOPELESS,
    ConflictError,
    DiskFullError,
    MillraceError,
    NotReadyError,
    SparkUnavailableError,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

RETRIES = 4
"""The largest number of retries of a task; no policy can exceed it."""

FIRST_DELAY: tuple[tuple[type[MillraceError], timedelta], ...] = (
    (ConflictError, timedelta(seconds=10)),
    (SparkUnavailableError, timedelta(seconds=15)),
    (NotReadyError, timedelta(minutes=5)),
    (DiskFullError, timedelta(minutes=5)),
)
"""Error -> the delay before the second try; each further delay is twice as long.

The driver has already retried a conflict, and a dead server is restarted within seconds; a late source needs minutes,
and so does a person who frees space on a full disk.
"""


class TypedRetryPolicy(RetryPolicy):
    """Short, growing delays for conflicts and a missing Spark server, long ones for late data; hopeless errors fail.

    All other errors keep the task's own retries and delay.
    """

    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Context | None = None
    ) -> RetryDecision:
        """Decide from the error's type and the number of tries, without chance."""
        reason = str(exception).partition("\n")[0]
        if isinstance(exception, MillraceError) and exception.outcome in HOPELESS:
            return RetryDecision.fail(reason)
        for error, delay in FIRST_DELAY:
            if isinstance(exception, error):
                return RetryDecision.retry(delay * 2 ** (max(try_number, 1) - 1), reason)
        return RetryDecision.default()
