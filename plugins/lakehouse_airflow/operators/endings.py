"""How a job's report ends its task: well, or with an error whose type decides whether Airflow retries it."""

from __future__ import annotations

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from include.contracts.job.report import JobReport
from include.errors import HOPELESS, ConflictError, DiskFullError, NotReadyError, Outcome, SparkUnavailableError

_RETRYABLE: dict[Outcome, type[Exception]] = {
    Outcome.CONFLICT: ConflictError,
    Outcome.NOT_READY: NotReadyError,
    Outcome.SPARK_UNAVAILABLE: SparkUnavailableError,
    Outcome.DISK_FULL: DiskFullError,
}
GOOD = (Outcome.COMMITTED, Outcome.NO_OP)
"""The outcomes of a job that ended well."""


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
    return _RETRYABLE.get(report.outcome, AirflowException)(text)
