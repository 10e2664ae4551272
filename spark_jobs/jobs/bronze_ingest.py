"""Load the new files or messages of a bronze table's source, each of them once."""

from __future__ import annotations

import logging

from tenacity import Retrying, retry_if_exception_type

from include.contracts.job.args import Job
from include.contracts.job.report import JobReport
from include.contracts.spec.table_spec import BronzeSpec
from spark_jobs.layers.bronze.bronze import BronzeIngest
from spark_jobs.layers.bronze.column_drift import NewColumnsError
from spark_jobs.layers.bronze.kafka_records import KafkaRecords
from spark_jobs.layers.bronze.landing_records import LandingRecords, UnreadableFileError
from spark_jobs.layers.bronze.records import BronzeRecords
from spark_jobs.layers.writing import check_and_report, commit_batch
from spark_jobs.protocol.batches import BatchResult
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.entrypoint import main

log = logging.getLogger(__name__)


def run(context: JobContext) -> JobReport:
    """Load what is valid, in batches of the spec's size; the run ends as bad input if a file was broken.

    Raises:
        NotReadyError: the interval's landing folder does not exist, or no Kafka broker answers.
    """
    spec: BronzeSpec = context.spec  # type: ignore[assignment]
    records: BronzeRecords = (KafkaRecords if spec.reads_kafka else LandingRecords)(context, spec)
    records.check_delivered()
    ingest = BronzeIngest(context, spec, records)
    report = check_and_report(context, _batches(context, ingest))
    return records.add_to_report(ingest.drift.add_to_report(report))


def _batches(context: JobContext, ingest: BronzeIngest) -> list[BatchResult]:
    """Commit batches until nothing is left to load, or the run is asked to end."""
    # The next plan leaves out the unreadable file, or has the new columns: no error comes twice, so this ends.
    retrying = Retrying(retry=retry_if_exception_type((UnreadableFileError, NewColumnsError)), reraise=True)
    results = [retrying(_next_batch, context, ingest)]
    while ingest.records.has_more and not context.is_to_stop():
        log.info("%s: the source has more than fits in one batch; going on", context.spec.table)
        results.append(retrying(_next_batch, context, ingest))
    return results


def _next_batch(context: JobContext, ingest: BronzeIngest) -> BatchResult:
    ingest.ensure_table()
    return commit_batch(context, ingest)


if __name__ == "__main__":
    main(Job.BRONZE_INGEST, run)
