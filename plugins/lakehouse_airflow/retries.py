"""How a failed job ends its task, and whether and when Airflow retries it: the type of the error alone decides."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.sdk import RetryDecision, RetryPolicy
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from millrace.contracts.job.report import JobReport
from millrace.errors import (
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

RETRY_DELAY = timedelta(minutes=1)
"""The delay before a retry after an error for which the policy has no back-off."""

GOOD = (Outcome.COMMITTED, Outcome.NO_OP)
"""The outcomes of a job that ended well."""


@dataclass(frozen=True)
class Backoff:
    """The delays between the tries of a task.

    Attributes:
        first: the delay before the second try.
        factor: how many times as long each further delay is.
        longest: the longest delay.
        retries: the largest number of retries of the task; None for as many as the task has.

    >>> backoff = Backoff(timedelta(seconds=10), longest=timedelta(seconds=30))
    >>> [str(backoff.delay(try_number)) for try_number in (1, 2, 3)]
    ['0:00:10', '0:00:20', '0:00:30']
    """

    first: timedelta
    factor: float = 2.0
    longest: timedelta = timedelta(hours=1)
    retries: int | None = None

    def delay(self, try_number: int) -> timedelta:
        """Return the delay after the try of this number; the first try is number 1, also after a clear."""
        seconds = self.first.total_seconds() * self.factor ** (max(try_number, 1) - 1)
        return timedelta(seconds=min(seconds, self.longest.total_seconds()))


@dataclass(frozen=True)
class TypedRetryPolicy(RetryPolicy):
    """Short, growing delays for conflicts and a missing Spark server, long ones for late data; hopeless errors fail.

    Every operator that runs a job has this policy by default. All other errors keep the task's own retries and delay.

    Attributes:
        conflict: the delays after a conflict with other writers, which the driver has already retried.
        no_spark: the delays while there is no Spark server; a dead one is restarted within seconds.
        not_ready: the delays while the data is late.
        disk_full: the delays while a disk is full, until a person frees space.
    """

    conflict: Backoff = Backoff(timedelta(seconds=10))
    no_spark: Backoff = Backoff(timedelta(seconds=15))
    not_ready: Backoff = Backoff(timedelta(minutes=5))
    disk_full: Backoff = Backoff(timedelta(minutes=5))

    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Context | None = None
    ) -> RetryDecision:
        """Decide from the error's type and the number of tries since the task was cleared, without chance."""
        if not isinstance(exception, MillraceError):
            return RetryDecision.default()
        reason, backoff = str(exception).partition("\n")[0], self._backoff(exception.outcome)
        if exception.outcome in HOPELESS:
            return RetryDecision.fail(reason)
        if backoff is None:
            return RetryDecision.default()
        # To clear a task leaves its number of tries, and adds them to the largest one.
        earlier = max_tries - (context["task"].retries or 0) if context else 0
        number = try_number - max(earlier, 0)
        if backoff.retries is not None and number > backoff.retries:
            return RetryDecision.fail(reason)
        return RetryDecision.retry(backoff.delay(number), reason)

    def _backoff(self, outcome: Outcome) -> Backoff | None:
        backoffs = {
            Outcome.CONFLICT: self.conflict,
            Outcome.SPARK_UNAVAILABLE: self.no_spark,
            Outcome.NOT_READY: self.not_ready,
            Outcome.DISK_FULL: self.disk_full,
        }
        return backoffs.get(outcome)


DEFAULT_POLICY = TypedRetryPolicy()
"""The policy of every operator that runs a job, unless the DAG file gives another one."""

_RETRIED = {error.outcome: error for error in (ConflictError, SparkUnavailableError, NotReadyError, DiskFullError)}


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
    return _RETRIED.get(report.outcome, AirflowException)(text)
