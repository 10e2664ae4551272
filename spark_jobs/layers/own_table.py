"""The table that a job writes: made, and held to its spec, before the first batch."""

from __future__ import annotations

from collections.abc import Set

from spark_jobs.delta_io.tables import TableShape, ensure_table
from spark_jobs.runtime.context import JobContext


def ensure_own_table(context: JobContext, shape: TableShape, addable: Set[str] = frozenset()) -> None:
    """`ensure_table` for the job's table, while nobody else commits to it unless the store decides who wins.

    Raises:
        BadInputError, ConflictError: as `ensure_table`.
        LeaseLostError: somebody else wrote the table for too long.
    """
    with context.only_writer():
        ensure_table(context.open_session, context.paths.table(context.spec.table), shape, addable)
