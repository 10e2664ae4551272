"""What writes and closes the batches of the job's table, whatever its layer is."""

from __future__ import annotations

from millrace.contracts.spec.table_spec import BronzeSpec, SilverSpec
from millrace.control.log.batch import Stream
from millrace_spark.layers.bronze.bronze import BronzeIngest
from millrace_spark.layers.gold.gold import GoldAggregate
from millrace_spark.layers.silver.silver import SilverMerge
from millrace_spark.protocol.batches import BatchWork
from millrace_spark.runtime.context import JobContext


def own_work(context: JobContext, stream: Stream | None = None) -> BatchWork:
    """Return the work of a stream of the job's table, by default of the only one; the table is not changed for it."""
    if isinstance(context.spec, BronzeSpec):
        ingest = BronzeIngest(context, context.spec)
        ingest.spec = ingest.drift.effective_spec()
        return ingest
    return SilverMerge(context, stream) if isinstance(context.spec, SilverSpec) else GoldAggregate(context)
