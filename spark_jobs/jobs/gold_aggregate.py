"""Compute the changed groups of a gold table again."""

from __future__ import annotations

from include.contracts.job.args import Job
from include.contracts.job.report import JobReport
from spark_jobs.layers.gold.gold import GoldAggregate
from spark_jobs.layers.writing import check_and_report, commit_batch
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.entrypoint import main


def run(context: JobContext) -> JobReport:
    """Compute the groups again that the sources' certified changes since the last batch touch.

    Raises:
        SpecError: the spec of a table that it reads is wrong.
        NotReadyError: a source has no certified version yet.
    """
    context.catalog.require_sound_sources(context.spec)
    aggregate = GoldAggregate(context)
    aggregate.ensure_table()
    return check_and_report(context, [commit_batch(context, aggregate)])


if __name__ == "__main__":
    main(Job.GOLD_AGGREGATE, run)
