"""Close the batch that a dead driver left open, before the table is replaced: nobody would close it afterwards."""

from __future__ import annotations

from millrace.control.log.batch import Stream
from millrace_spark.layers.own_table import batch_request
from millrace_spark.layers.own_work import own_work
from millrace_spark.layers.writing import batch_writer
from millrace_spark.runtime.context import JobContext


def close_open_batch(context: JobContext) -> None:
    """Close the last batch of the job's table, if its writer died; the caller holds the lease of the table.

    Raises:
        NotReadyError: it cannot be closed any more; the message says why.
    """
    request = batch_request(context, Stream(context.spec.table))
    batch_writer(context, request, own_work(context)).finish_unleased()
