"""Compute the changed groups of a gold table again."""

from __future__ import annotations

from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace_spark.layers.gold.gold import GoldAggregate
from millrace_spark.layers.writing import check_and_report, commit_batch
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import main


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
