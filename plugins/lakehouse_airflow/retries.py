"""How a failed job ends its task, and whether and when Airflow retries it: the type of the error alone decides."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.sdk import RetryDecision, RetryPolicy
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from include.contracts.job.report import JobReport
from include.errors import (
    HOPELESS,
    ConflictError,
    DiskFullError,
    MillraceError,
    NotReadyError,
    Outcome,
    SparkUnavailableError,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

RETRIES = 4
"""The largest number of retries of a task; no policy can exceed it."""

GOOD = (Outcome.COMMITTED, Outcome.NO_OP)
"""The outcomes of a job that ended well."""

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


def error_of(report: JobReport, driver_log: object) -> Exception | None:
    """Return the error to raise for `report`, its first line for the person on call; None if the job ended well.

    Args:
        report: the job's report.
        driver_log: the file with the driver's output, for the message.
    """
    if report.outcome in GOOD:
        return None
    text = f"{report.message}\nThe driver's whole output: {driver_log}"
    if report.outcome in HOPELESS:
        return AirflowFailException(text)
    retried = {error.outcome: error for error, _ in FIRST_DELAY}
    return retried[report.outcome](text) if report.outcome in retried else AirflowException(text)


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
