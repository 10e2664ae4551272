"""Merge new bronze rows into a silver table by key and sequence; or compute the rows of its query."""

from __future__ import annotations

from itertools import chain

from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.contracts.spec.table_spec import SilverQuerySpec, SilverSpec
from millrace.control.log.streams import in_turn, streams_of
from millrace.control.planning.full_snapshots import delay_notes
from millrace.control.planning.source_ranges import certified_sources
from millrace_spark.jobs import gold_aggregate
from millrace_spark.layers.own_table import ensure_own_table
from millrace_spark.layers.silver.silver import merges_of
from millrace_spark.layers.silver.tables import silver_shape
from millrace_spark.layers.stream_batches import commit_streams
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import main


def run(context: JobContext) -> JobReport:
    """Merge the sources' certified rows since the last batch, in batches of the spec's size.

    A table with a query is computed as a gold table is.

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
    report = commit_streams(context, merges, merge_of)
    waiting = chain.from_iterable(delay_notes(spec.table, merge.delays) for merge in merges.values())
    return report.model_copy(update={"notes": (*report.notes, *waiting)})


if __name__ == "__main__":
    main(Job.SILVER_MERGE, run)
