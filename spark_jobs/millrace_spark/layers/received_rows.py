"""Quarantined rows as their table's writer received them, and what the table's rules say of them now."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from millrace.contracts.job.report import RowCounts
from millrace.control.gates.conservation import require_conserved
from millrace.control.log.batch import Winner
from millrace.control.quarantine.events import ReceivedRow
from millrace.errors import ConservationError
from millrace_spark.runtime.context import JobContext
from millrace_spark.transforms.received import IS_FIXED, RECEIVED, ROW_ID, values_of
from millrace_spark.transforms.refusals import is_quarantined, reasons

MAX_ROWS = 10_000
"""How many rows a replay tries at most, because they pass through the driver; several batches try more."""


def received_frame(session: SparkSession, rows: Sequence[ReceivedRow], schema: StructType) -> DataFrame:
    """Return the rows with the columns of `schema`, and `ROW_ID` and `IS_FIXED`."""
    values = [(row.id, row.received, bool(row.fix)) for row in rows]
    frame = session.createDataFrame(values, f"{ROW_ID} string, {RECEIVED} string, {IS_FIXED} boolean")
    return frame.withColumn("_fields", values_of(F.col(RECEIVED), schema)).select(ROW_ID, IS_FIXED, "_fields.*")


def refused_again(checked: DataFrame) -> dict[str, tuple[str, ...]]:
    """Return row id -> why the row stays in quarantine, for rows with refusals and `ROW_ID`."""
    rows = checked.where(is_quarantined()).select(ROW_ID, reasons().alias("reasons")).collect()
    return {row[ROW_ID]: tuple(row["reasons"]) for row in rows}


def record_outcome(
    context: JobContext, winner: Winner, counts: RowCounts, refused: dict[str, tuple[str, ...]], read_again: int = 0
) -> None:
    """Record the outcome of each row of a replay, as the last step before its batch is closed.

    Args:
        context: the job's.
        winner: the replay's batch.
        counts: the counts of all rows that the batch read.
        refused: row id -> why the row stays in quarantine.
        read_again: how many of the rows that the batch read do not belong to the replay.

    Raises:
        ConservationError: the numbers of pinned, tried and refused rows contradict one another.
    """
    require_conserved(winner, counts)
    tried = counts.read - read_again
    expected = (winner.intent.sources.replayed_rows, len(refused) if read_again else counts.quarantined)
    if (tried, len(refused)) != expected:
        raise ConservationError(
            f"{winner.intent.table} batch {winner.batch_seq}: {tried} rows were tried and {len(refused)} refused, "
            f"but {expected[0]} were to be tried and {expected[1]} were counted as refused\nThe rows stay in "
            "quarantine unchanged; put the spec back to what it was when the batch was committed, and run this again."
        )
    replay = context.ops.quarantine.decision_of(winner.intent.table, winner.intent.sources.replay)
    context.ops.quarantine.record_outcome(winner, refused.items(), replay)
