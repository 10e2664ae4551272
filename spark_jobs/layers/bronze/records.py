"""What a bronze batch needs from its source; landing files and Kafka topics each implement it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pyspark.sql import Column, DataFrame, SparkSession

from include.contracts.job.report import FileRows, JobReport
from include.contracts.spec.table_spec import BronzeSpec
from include.control.log.batch import StreamPosition, Winner
from spark_jobs.layers.refused import DroppedRows
from spark_jobs.protocol.batches import BatchPlan


class BronzeRecords(Protocol):
    """The records that a source delivers."""

    @property
    def origin(self) -> Mapping[str, str]:
        """The columns of a row's origin -> their types."""

    @property
    def has_more(self) -> bool:
        """Whether the last plan left something for further batches."""

    def check_delivered(self) -> None:
        """Check that the source is there, before anything is created or started.

        Raises:
            NotReadyError: it has not arrived, or does not answer.
        """

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        """Plan what the next batch loads; None if nothing is new."""

    def read(self, session: SparkSession, spec: BronzeSpec, plan: BatchPlan) -> DataFrame:
        """Read the records: the columns of `spec`, `_rescued`, `_corrupt_record`, and the origin.

        Args:
            session: the batch's own.
            spec: the table's spec, with the columns that drift has added.
            plan: what to read.
        """

    def is_exempt(self) -> Column:
        """Return true for a record that no rule checks."""

    def source(self) -> Column:
        """Return the name of the file or partition of a record."""

    def with_position(self, records: DataFrame) -> DataFrame:
        """Add `_position`: the position of each record in its source."""

    @property
    def has_row_count(self) -> bool:
        """Whether the source itself states how many records a plan reads, and all of them can be parsed."""

    def row_count(self, plan: BatchPlan) -> int:
        """Return this number; only for a source with `has_row_count`."""

    def require_unchanged(self, plan: BatchPlan) -> None:
        """Check that the source still has what a batch has read, so that the batch can be read again.

        Raises:
            BadInputError: it has not.
        """

    def blame(self, error: Exception, plan: BatchPlan) -> None:
        """Find the part of the source that made a read fail; return if there is none.

        Raises:
            UnreadableFileError: a file made it fail; the next plan leaves it out.
        """

    def close_batch(
        self, winner: Winner, plan: BatchPlan, counts: Mapping[str, int], dropped: Sequence[DroppedRows]
    ) -> Mapping[str, FileRows]:
        """Do what the source needs when a batch is closed.

        Args:
            winner: the batch.
            plan: what it has read.
            counts: its records `read`, `quarantined` and `dropped`.
            dropped: its dropped records, by source and reason.

        Returns:
            Landing file -> the counts of its records.
        """

    def add_to_report(self, report: JobReport) -> JobReport:
        """Return the report with the state of the source."""
