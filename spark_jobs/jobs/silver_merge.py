"""Merge new bronze rows into a silver table by key and sequence; or compute the rows of its query."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import chain

from include.contracts.job.args import Job
from include.contracts.job.report import JobReport
from include.contracts.spec.table_spec import SilverQuerySpec, SilverSpec
from include.control.log.batch import Stream
from include.control.log.streams import in_turn, streams_of
from include.control.planning.full_snapshots import delay_notes
from include.control.planning.source_ranges import certified_sources
from include.errors import MillraceError
from spark_jobs.jobs import gold_aggregate
from spark_jobs.layers.own_table import ensure_own_table
from spark_jobs.layers.silver.silver import SilverMerge
from spark_jobs.layers.silver.streams import merges_of
from spark_jobs.layers.silver.tables import silver_shape
from spark_jobs.layers.writing import check_and_report, commit_batch, finish_streams
from spark_jobs.protocol.batches import BatchResult
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.entrypoint import main

log = logging.getLogger(__name__)


def run(context: JobContext) -> JobReport:
    """Merge the sources' certified rows since the last batch, in batches of the spec's size.

    A table with a query is computed as a gold table is. Of a table with several streams, an error in one does not stop
    the others: it ends the run after they were written and checked.

    Raises:
        SpecError: the spec of a table that it reads is wrong.
        NotReadyError: a source has no certified version yet.
        BadInputError: a source delivers rows of other partitions than its own.
    """
    if isinstance(context.spec, SilverQuerySpec):
        return gold_aggregate.run(context)
    spec: SilverSpec = context.spec  # type: ignore[assignment]
    context.catalog.require_sound_sources(spec)
    certified_sources(spec, context.ops.gates, context.paths)
    merge_of = merges_of(context)
    ensure_own_table(context, silver_shape(spec))
    merges = {stream: merge_of(stream) for stream in in_turn(streams_of(spec), context.args.interval_start)}
    results, errors = list[BatchResult](), list[MillraceError]()
    for stream, merge in merges.items():
        try:
            results.extend(_batches(context, stream, merge))
        except MillraceError as error:
            if len(merges) == 1:
                raise
            log.error("%s: %s", stream.name, error)
            errors.append(error)
    if results:
        finish_streams(context, merge_of, results)
        report = check_and_report(context, results)
    if errors:
        raise errors[0]
    waiting = chain.from_iterable(delay_notes(spec.table, merge.delays) for merge in merges.values())
    return report.model_copy(update={"notes": (*report.notes, *waiting)})


def _batches(context: JobContext, stream: Stream, merge: SilverMerge) -> Iterator[BatchResult]:
    """Yield the batches of a stream until its sources have nothing more."""
    yield commit_batch(context, merge, stream)
    while merge.has_more and not context.is_to_stop():
        log.info("%s: the source has more than fits in one batch; going on", stream.table)
        yield commit_batch(context, merge, stream)


if __name__ == "__main__":
    main(Job.SILVER_MERGE, run)
