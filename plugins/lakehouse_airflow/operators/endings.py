"""How a job's report ends its task: well, or with an error whose type says whether another try makes sense."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from include.contracts.job.report import JobReport
from include.errors import HOPELESS, ConflictError, DiskFullError, NotReadyError, Outcome, SparkUnavailableError

_TRY_AGAIN: dict[Outcome, type[Exception]] = {
    Outcome.CONFLICT: ConflictError,
    Outcome.NOT_READY: NotReadyError,
    Outcome.SPARK_UNAVAILABLE: SparkUnavailableError,
    Outcome.DISK_FULL: DiskFullError,
}
_WELL = (Outcome.COMMITTED, Outcome.NO_OP)


def error_of(report: JobReport, driver_log: object) -> Exception | None:
    """The error to raise for `report`, its first line for the person on call; None when the job ended well.

    Args:
        report: what the job says of its end.
        driver_log: where the driver's output is, named in the message.
    """
    if report.outcome in _WELL:
        return None
    text = f"{report.message}\nThe driver's whole output: {driver_log}"
    if report.outcome in HOPELESS:
        return AirflowFailException(text)
    return _TRY_AGAIN.get(report.outcome, AirflowException)(text)


def lines_about(report: JobReport, failure: str) -> Iterator[tuple[int, str]]:
    """What the task log says of a job that left `report`, each line with its level.

    Args:
        report: what the job says of its end.
        failure: how the driver's process failed; empty when it did not.
    """
    rows = ", ".join(f"{count} {name}" for name, count in report.rows.model_dump().items() if count)
    seconds = report.timings_s.get("total", 0.0)
    yield logging.INFO, f"rows: {rows or 'none'}; version {report.version}; {seconds:.1f} s in the job"
    for note in report.notes:
        yield logging.WARNING, note
    if failure and report.outcome in _WELL:
        yield logging.WARNING, f"The job ended well, but its driver did not: {failure}"
