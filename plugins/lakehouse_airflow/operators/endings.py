"""How a job's report ends its task: well, or with an error whose type decides whether Airflow retries it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from include.contracts.job.report import JobReport
from include.errors import HOPELESS, ConflictError, DiskFullError, NotReadyError, Outcome, SparkUnavailableError

_RETRYABLE: dict[Outcome, type[Exception]] = {
    Outcome.CONFLICT: ConflictError,
    Outcome.NOT_READY: NotReadyError,
    Outcome.SPARK_UNAVAILABLE: SparkUnavailableError,
    Outcome.DISK_FULL: DiskFullError,
}
_GOOD = (Outcome.COMMITTED, Outcome.NO_OP)


def error_of(report: JobReport, driver_log: object) -> Exception | None:
    """Return the error to raise for `report`, its first line for the person on call; None if the job ended well.

    Args:
        report: the job's report.
        driver_log: the file with the driver's output, for the message.
    """
    if report.outcome in _GOOD:
        return None
    text = f"{report.message}\nThe driver's whole output: {driver_log}"
    if report.outcome in HOPELESS:
        return AirflowFailException(text)
    return _RETRYABLE.get(report.outcome, AirflowException)(text)


def lines_about(report: JobReport, failure: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of the task log about a job's end, each with its level.

    Args:
        report: the job's report.
        failure: how the driver's process failed; empty if it did not.
    """
    counts = ", ".join(f"{count} {action}" for action, count in report.rows.model_dump().items() if count)
    seconds = report.timings_s.get("total", 0.0)
    yield logging.INFO, f"rows: {counts or 'none'}; version {report.version}; {seconds:.1f} s in the job"
    for note in report.notes:
        yield logging.WARNING, note
    if failure and report.outcome in _GOOD:
        yield logging.WARNING, f"The job ended well, but its driver did not: {failure}"
