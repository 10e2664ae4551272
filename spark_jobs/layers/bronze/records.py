"""What a bronze batch needs of its source; landing files and Kafka topics each bring it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pyspark.sql import Column, DataFrame, SparkSession

from include.contracts.job.report import FileRows, JobReport
from include.contracts.spec.table_spec import BronzeSpec
from include.control.log.batch import StreamPosition, Winner
from spark_jobs.layers.refused import Dropped
from spark_jobs.protocol.batches import BatchPlan


class BronzeRecords(Protocol):
    """The records that a source delivers."""

    @property
    def origin(self) -> Mapping[str, str]:
        """Column -> type, of what bronze keeps of where a row came from."""

    @property
    def has_more(self) -> bool:
        """Whether the last plan left something for further batches."""

    def check_delivered(self) -> None:
        """Whether there is a source at all, before anything is created or started.

        Raises:
            NotReadyError: it has not arrived, or does not answer.
        """

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        """What the next batch loads, or None when there is nothing new."""

    def read(self, session: SparkSession, spec: BronzeSpec, plan: BatchPlan) -> DataFrame:
        """The records: the columns of `spec`, `_rescued`, `_corrupt_record`, the origin, and what `placed` needs.

        Args:
            session: the batch's own.
            spec: the table's spec, with the columns that drift has brought.
            plan: what to read.
        """

    def exempt(self) -> Column:
        """True for a record that no rule judges."""

    def source(self) -> Column:
        """Where a record came from, as a person calls it."""

    def placed(self, records: DataFrame) -> DataFrame:
        """Add `_position`: where in its source a record stands."""

    @property
    def state_their_rows(self) -> bool:
        """Whether the source itself says how many records a plan reads, none of which can fail to be parsed."""

    def stated_rows(self, plan: BatchPlan) -> int:
        """How many it says; asked only of a source that does."""

    def require_as_planned(self, plan: BatchPlan) -> None:
        """Whether the source still holds what a batch has read, so that it can be read once more.

        Raises:
            BadInputError: it does not.
        """

    def blame(self, error: Exception, plan: BatchPlan) -> None:
        """Look for the part of the source that made a read fail.

        Raises:
            UnreadableFileError: it was found, and the next plan leaves it out.
        """

    def closed(
        self, winner: Winner, plan: BatchPlan, counts: Mapping[str, int], left_out: Sequence[Dropped]
    ) -> Mapping[str, FileRows]:
        """Do what a closed batch means to the source.

        Args:
            winner: the batch.
            plan: what it has read.
            counts: its records `read`, `quarantined` and `dropped`.
            left_out: the dropped ones of each source.

        Returns:
            Landing file -> what became of its records.
        """

    def ended(self, report: JobReport) -> JobReport:
        """The report with what the source has to say of the run."""
