"""Load the interval's new landing files into a bronze table, once each."""

from __future__ import annotations

from tenacity import Retrying, retry_if_exception_type

from include.contracts.job_args import Job
from include.contracts.job_report import JobReport
from include.errors import BadInputError, Outcome
from spark_jobs.delta_io.tables import ensure_table
from spark_jobs.layers.bronze import BronzeIngest, UnreadableFileError, bronze_shape
from spark_jobs.layers.writing import write_batch
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.entrypoint import main


def run(context: JobContext) -> JobReport:
    """Load what is sound; the run ends as bad input if any file was broken, and names each.

    Raises:
        NotReadyError: the interval's landing folder does not exist.
    """
    ingest = BronzeIngest(context)
    ingest.check_delivered()
    ensure_table(context.open_session, context.paths.table(context.spec.table), bronze_shape(ingest.spec))
    # Each unreadable file is left out of the next plan, so this ends after as many rounds as there are such files.
    report = Retrying(retry=retry_if_exception_type(UnreadableFileError), reraise=True)(write_batch, context, ingest)
    report = report.model_copy(update={"files": ingest.file_statuses()})
    return _as_bad_input(report, ingest.broken_message()) if ingest.broken else report


def _as_bad_input(report: JobReport, message: str) -> JobReport:
    """The report of a run that loaded all it could; its rows and version are those of what was loaded."""
    ended = {"outcome": Outcome.BAD_INPUT, "error_class": BadInputError.__name__, "message": message}
    return report.model_copy(update=ended)


if __name__ == "__main__":
    main(Job.BRONZE_INGEST, run)
