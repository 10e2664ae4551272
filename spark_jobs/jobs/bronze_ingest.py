"""Load the interval's new landing files into a bronze table, once each."""

from __future__ import annotations

import logging

from tenacity import Retrying, retry_if_exception_type

from include.contracts.job_args import Job
from include.contracts.job_report import JobReport
from include.errors import BadInputError, MillraceError, NotReadyError
from spark_jobs.delta_io.batches import BatchResult
from spark_jobs.delta_io.tables import ensure_table
from spark_jobs.layers.bronze import BronzeIngest, UnreadableFileError, bronze_shape
from spark_jobs.layers.writing import commit_batch, judge_and_report
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.entrypoint import main

log = logging.getLogger(__name__)


def run(context: JobContext) -> JobReport:
    """Load what is sound, in batches of the spec's size; the run ends as bad input if any file was broken.

    Raises:
        NotReadyError: the interval's landing folder does not exist.
    """
    ingest = BronzeIngest(context)
    ingest.check_delivered()
    ensure_table(context.open_session, context.paths.table(context.spec.table), bronze_shape(ingest.spec))
    report = judge_and_report(context, _batches(context, ingest))
    report = report.model_copy(update={"files": ingest.file_statuses()})
    if ingest.files.broken:
        return _ended(report, BadInputError, ingest.broken_message())
    return _ended(report, NotReadyError, ingest.unfinished_message()) if ingest.files.unfinished else report


def _batches(context: JobContext, ingest: BronzeIngest) -> list[BatchResult]:
    """Commit batches until no file is left that can be loaded."""
    # Each unreadable file is left out of the next plan, so this ends after as many rounds as there are such files.
    patient = Retrying(retry=retry_if_exception_type(UnreadableFileError), reraise=True)
    results = [patient(commit_batch, context, ingest)]
    while ingest.files.later:
        log.info("%s: %s files are left for further batches", context.spec.table, f"{ingest.files.later:,}")
        results.append(patient(commit_batch, context, ingest))
    return results


def _ended(report: JobReport, error: type[MillraceError], message: str) -> JobReport:
    """The report of a run that loaded all it could; its rows and version are those of what was loaded."""
    return report.model_copy(update={"outcome": error.outcome, "error_class": error.__name__, "message": message})


if __name__ == "__main__":
    main(Job.BRONZE_INGEST, run)
