"""Load the new files or messages of a bronze table's source, each of them once."""

from __future__ import annotations

import logging

from tenacity import Retrying, retry_if_exception_type

from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace_spark.layers.bronze.bronze import BronzeIngest
from millrace_spark.layers.bronze.column_drift import NewColumnsError
from millrace_spark.layers.bronze.unreadable_files import UnreadableFileError
from millrace_spark.layers.stream_batches import finish_streams
from millrace_spark.layers.writing import check_and_report, commit_batch, newest_winner
from millrace_spark.protocol.batches import BatchResult
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import main

log = logging.getLogger(__name__)


def run(context: JobContext) -> JobReport:
    """Load what is valid, in batches of the spec's size; the run ends as bad input if a file was broken.

    Raises:
        NotReadyError: the interval's landing folder does not exist, or no Kafka broker answers.
    """
    spec: BronzeSpec = context.spec  # type: ignore[assignment]
    ingest = BronzeIngest(context, spec)
    ingest.records.check_delivered()

    def next_batch() -> BatchResult:
        ingest.ensure_table()
        return commit_batch(context, ingest)

    # The next plan leaves out the unreadable file, or has the new columns: no error comes twice, so this ends.
    retrying = Retrying(retry=retry_if_exception_type((UnreadableFileError, NewColumnsError)), reraise=True)
    results = [retrying(next_batch)]
    while ingest.records.has_more and not context.is_to_stop():
        log.info("%s: the source has more than fits in one batch; going on", spec.table)
        results.append(retrying(next_batch))
    finish_streams(context, lambda _: ingest, newest_winner(results))
    return ingest.records.add_to_report(ingest.drift.add_to_report(check_and_report(context, results)))


if __name__ == "__main__":
    main(Job.BRONZE_INGEST, run)
