"""The quarantined rows that replays read into silver: bronze rows as they were received, or as a person fixed them."""

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

_DELIVERY_COLUMNS = [SOURCE_FILE, "_batch_seq"]
"""These columns identify the delivery of a row: a landing file can be delivered several times."""


class SilverReplays:
    """Read the rows that replays add to a silver table."""

    def __init__(self, context: JobContext, spec: SilverSpec) -> None:
        self._context = context
        self._spec = spec
        self._path = context.paths.table(spec.source)

    def received_schema(self, session: SparkSession) -> StructType:
        """Return the columns of a bronze row as silver receives it."""
        bronze = read_version(session, self._path, latest_version(self._path)).schema
        return StructType([field for field in bronze.fields if is_received(field.name)])

    def check_received(self, session: SparkSession, rows: Sequence[ReceivedRow]) -> DataFrame:
        """Return the rows with their types and refusals, as if they came from bronze."""
        return fixed_rows(received_frame(session, rows, self.received_schema(session)), self._spec)

    def read_replay(self, session: SparkSession, intent: Intent) -> DataFrame:
        """Return the rows of a replay, with their types and refusals."""
        return self.check_received(
            session, self._context.ops.quarantine.pinned_rows(intent.table, intent.sources.replay)
        )

    def settle(self, winner: Winner, counts: RowCounts) -> None:
        """Record the outcome of each row of a committed replay.

        Raises:
            ConservationError: the numbers of pinned, tried and refused rows contradict one another.
        """
        with self._context.open_session({}) as session:
            rows = self.read_replay(session, winner.intent)
            refused = refused_again(rows)
            # The batch also counts the earlier rows from which it computes a state again.
            read_again = counts.read - rows.count() if self._spec.builds_on_earlier else 0
        record_outcome(self._context, winner, counts, refused, read_again)

    def read_earlier(
        self, session: SparkSession, intent: Intent, still_in: DataFrame | None = None
    ) -> DataFrame | None:
        """Return the accepted rows that earlier replays added to the table; None if there are none.

        Args:
            session: the batch's own.
            intent: the batch.
            still_in: bronze as the batch reads it; rows of deliveries that it does not contain any more are left out.
        """
        replayed = self._context.ops.quarantine.replayed_rows(intent.table, intent.table_id, intent.batch_seq)
        if not replayed:
            return None
        rows = received_frame(session, replayed, self.received_schema(session))
        if still_in is not None and SOURCE_FILE in rows.columns:
            rows = rows.join(still_in.select(*_DELIVERY_COLUMNS).distinct(), _DELIVERY_COLUMNS, "left_semi")
        return fixed_rows(rows, self._spec).where(is_accepted())
