"""Quarantined rows on their way back into their table: read as its writer receives them, judged by the same rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from include.contracts.job.report import RowCounts
from include.control.gates.conservation import require_conserved
from include.control.log.batch import Winner
from include.control.quarantine.events import ReceivedRow
from include.errors import ConservationError
from spark_jobs.runtime.context import JobContext
from spark_jobs.transforms.received import RECEIVED_SCHEMA, ROW_ID, parse_received
from spark_jobs.transforms.refusals import is_accepted, is_quarantined, reasons


class ReceivesRows(Protocol):
    """The layer's part: what a received row of its table looks like, and whether the rules let it through."""

    def received_schema(self, session: SparkSession) -> StructType:
        """The columns of a row as the table's writer receives it."""

    def judge_received(self, session: SparkSession, rows: Sequence[ReceivedRow]) -> DataFrame:
        """The rows in the form in which the layer judges them, with `ROW_ID`."""


def received_frame(session: SparkSession, rows: Sequence[ReceivedRow], schema: StructType) -> DataFrame:
    """The rows with the columns of `schema`, and `ROW_ID` and `IS_FIXED`."""
    told = [(row.id, row.received, bool(row.fix)) for row in rows]
    return parse_received(session.createDataFrame(told, RECEIVED_SCHEMA), schema)


def refused_again(judged: DataFrame) -> dict[str, tuple[str, ...]]:
    """Row id -> why it stays in quarantine, of judged rows with `ROW_ID`."""
    rows = judged.where(is_quarantined()).select(ROW_ID, reasons().alias("reasons")).collect()
    return {row[ROW_ID]: tuple(row["reasons"]) for row in rows}


def verdicts(judged: DataFrame) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Row id -> (`applied`, `quarantined` or `dropped` as its fate would be if it were the newest, the reasons)."""
    fate = F.when(is_accepted(), "applied").when(is_quarantined(), "quarantined").otherwise("dropped")
    rows = judged.select(ROW_ID, fate.alias("fate"), reasons().alias("reasons")).collect()
    return {row[ROW_ID]: (row["fate"], tuple(row["reasons"])) for row in rows}


def record_outcome(
    context: JobContext, winner: Winner, fates: RowCounts, refused: dict[str, tuple[str, ...]], read_again: int = 0
) -> None:
    """Write down what became of each row of a replay: the last thing before its batch is closed.

    Args:
        context: the job's.
        winner: the replay's batch.
        fates: of all rows that it read.
        refused: row id -> why it stays in quarantine.
        read_again: how many of the rows that it read are no rows of the replay.

    Raises:
        ConservationError: the rows that were pinned, tried and refused do not add up.
    """
    require_conserved(winner, fates)
    tried = fates.read - read_again
    expected = (winner.intent.sources.replayed_rows, len(refused) if read_again else fates.quarantined)
    if (tried, len(refused)) != expected:
        msg = (
            f"{winner.intent.table} batch {winner.batch_seq}: {tried} rows were tried and {len(refused)} refused, "
            f"but {expected[0]} were to be tried and {expected[1]} counted as refused\nThe rows stay as they stand in "
            "quarantine; put the spec back to what it was when the batch was committed, and run this again."
        )
        raise ConservationError(msg)
    said = context.records.quarantine.pinned_by(winner.intent.table, winner.intent.sources.replay)
    context.records.quarantine.record_outcome(winner, refused.items(), said)
