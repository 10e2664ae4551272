"""Merge new bronze rows into a silver table by key and sequence; or compute the rows of its query."""

from __future__ import annotations

import logging

from include.contracts.job.args import Job
from include.contracts.job.report import JobReport
from include.contracts.spec.table_spec import SilverQuerySpec
from include.control.planning.full_snapshots import delay_notes
from include.control.planning.source_ranges import certified_sources
from spark_jobs.jobs import gold_aggregate
from spark_jobs.layers.own_table import ensure_own_table, require_fitting_table
from spark_jobs.layers.silver.silver import SilverMerge
from spark_jobs.layers.silver.tables import silver_shape
from spark_jobs.layers.writing import check_and_report, commit_batch
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.entrypoint import main

log = logging.getLogger(__name__)


def run(context: JobContext) -> JobReport:
    """Merge the source's certified rows since the last batch, in batches of the spec's size.

    A table with a query is computed as a gold table is.

    Raises:
        SpecError: the spec of a table that it reads is wrong.
        NotReadyError: the source has no certified version yet.
    """
    if isinstance(context.spec, SilverQuerySpec):
        return gold_aggregate.run(context)
    context.catalog.require_sound_sources(context.spec)
    merge = SilverMerge(context)
    certified_sources(merge.spec, context.ops.gates, context.paths)
    require_fitting_table(context, merge.spec)
    ensure_own_table(context, silver_shape(merge.spec))
    results = [commit_batch(context, merge)]
    while merge.has_more and not context.is_to_stop():
        log.info("%s: the source has more than fits in one batch; going on", context.spec.table)
        results.append(commit_batch(context, merge))
    report = check_and_report(context, results)
    waiting = delay_notes(merge.spec.table, merge.delays)
    return report.model_copy(update={"notes": (*report.notes, *waiting)})


if __name__ == "__main__":
    main(Job.SILVER_MERGE, run)
