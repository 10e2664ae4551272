"""Quarantined rows on their way back into silver: as the bronze rows that they were, or as somebody has mended them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from include.contracts.job.report import RowCounts
from include.contracts.spec.table_spec import SilverSpec
from include.control.log.batch import Intent, Winner
from include.control.log.delta_log import latest_version
from include.control.quarantine.events import ReceivedRow
from spark_jobs.delta_io.landing_reads import SOURCE_FILE
from spark_jobs.delta_io.reads import read_version
from spark_jobs.layers.received_rows import received_frame, record_outcome, refused_again
from spark_jobs.runtime.context import JobContext
from spark_jobs.transforms.received import is_received
from spark_jobs.transforms.refusals import is_accepted
from spark_jobs.transforms.silver.silver import fixed_rows

_BATCH_OF_FILE = [SOURCE_FILE, "_batch_seq"]
"""What tells the rows of one delivery of a landing file from those of another."""


class SilverReplays:
    """The rows that replays bring to a silver table."""

    def __init__(self, context: JobContext, spec: SilverSpec) -> None:
        self._context = context
        self._spec = spec
        self._path = context.paths.table(spec.source)

    def received_schema(self, session: SparkSession) -> StructType:
        """The columns of a bronze row as silver receives it."""
        bronze = read_version(session, self._path, latest_version(self._path)).schema
        return StructType([field for field in bronze.fields if is_received(field.name)])

    def judge_received(self, session: SparkSession, rows: Sequence[ReceivedRow]) -> DataFrame:
        """The rows, typed and judged like those that come from bronze."""
        return fixed_rows(received_frame(session, rows, self.received_schema(session)), self._spec)

    def judged(self, session: SparkSession, intent: Intent) -> DataFrame:
        """The rows that a replay tries."""
        return self.judge_received(
            session, self._context.records.quarantine.pinned(intent.table, intent.sources.replay)
        )

    def settle(self, winner: Winner, fates: RowCounts) -> None:
        """Record what became of each row of a committed replay.

        Raises:
            ConservationError: the rows that were pinned, tried and refused do not add up.
        """
        with self._context.open_session({}) as session:
            judged = self.judged(session, winner.intent)
            refused = refused_again(judged)
            # What a state is built on was read again, too, and is counted among the batch's rows.
            again = fates.read - judged.count() if self._spec.builds_on_earlier else 0
        record_outcome(self._context, winner, fates, refused, again)

    def taken(self, session: SparkSession, intent: Intent, still_in: DataFrame | None = None) -> DataFrame | None:
        """The rows that earlier replays of the table have brought, judged and accepted; None where there was none.

        Args:
            session: the batch's own.
            intent: the batch.
            still_in: bronze as the batch reads it; only rows of deliveries that it still holds.
        """
        replayed = self._context.records.quarantine.replayed_before(intent.table, intent.table_id, intent.batch_seq)
        if not replayed:
            return None
        rows = received_frame(session, replayed, self.received_schema(session))
        if still_in is not None and SOURCE_FILE in rows.columns:
            rows = rows.join(still_in.select(*_BATCH_OF_FILE).distinct(), _BATCH_OF_FILE, "left_semi")
        return fixed_rows(rows, self._spec).where(is_accepted())
