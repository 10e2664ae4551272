"""The streams of a silver table: one, or one for each of its sources (ADR 57)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from millrace.control.log.batch import Stream
from millrace_spark.layers.own_table import require_fitting_table
from millrace_spark.layers.silver.silver import SilverMerge
from millrace_spark.layers.streams import follow_concurrency
from millrace_spark.runtime.context import JobContext


def merges_of(context: JobContext) -> Callable[[Stream], SilverMerge]:
    """Return what merges each stream of the job's table, after its streams were made those of the spec.

    Raises:
        MisfitError: the table does not fit its spec. This comes first: a batch of the change would name the new spec.
        BadInputError, ConflictError: as `follow_concurrency`.
    """
    require_fitting_table(context, context.spec)
    merge_of = partial(SilverMerge, context)
    follow_concurrency(context, merge_of)
    return merge_of
