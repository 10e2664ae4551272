"""Merge new bronze rows into a silver table by key and sequence."""

from __future__ import annotations

from include.contracts.job_args import Job
from include.contracts.job_report import JobReport
from include.control.source_ranges import certified_sources
from spark_jobs.delta_io.tables import ensure_table
from spark_jobs.layers.silver import SilverMerge
from spark_jobs.layers.silver_tables import silver_shape
from spark_jobs.layers.writing import write_batch
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.entrypoint import main


def run(context: JobContext) -> JobReport:
    """Merge the source's certified rows since the last batch.

    Raises:
        NotReadyError: the source has no certified version yet.
    """
    merge = SilverMerge(context)
    certified_sources(merge.spec, context.gates)
    ensure_table(context.open_session, context.paths.table(context.spec.table), silver_shape(merge.spec))
    return write_batch(context, merge)


if __name__ == "__main__":
    main(Job.SILVER_MERGE, run)
