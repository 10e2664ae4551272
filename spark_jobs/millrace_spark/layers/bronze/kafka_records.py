"""Kafka topics as the source of a bronze table."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

from confluent_kafka import KafkaException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.counted import counted
from millrace.contracts.job.report import FileRows, JobReport
from millrace.contracts.spec.bronze_sources import NULL_MESSAGE
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.kafka.cluster import KafkaCluster
from millrace.control.kafka.offsets import OffsetPlan, Offsets, plan_offsets, require_nothing_lost, waits_for_more
from millrace.control.kafka.order import order_notes
from millrace.control.log.batch import StreamPosition, Winner
from millrace.control.log.delta_log import read_commit
from millrace.errors import BadInputError
from millrace_spark.delta_io.kafka_reads import read_messages
from millrace_spark.layers.bronze.lost_records import ReadAgain
from millrace_spark.layers.dropped import DroppedRows
from millrace_spark.protocol.batches import BatchPlan
from millrace_spark.runtime.context import JobContext
from millrace_spark.transforms.drift import drift_of

log = logging.getLogger(__name__)


class KafkaRecords:
    """The records of Kafka topics, with the same methods as `LandingRecords`.

    Attributes:
        offsets: the offsets of the last plan.
    """

    has_row_count = False
    """A topic that is compacted, or written in transactions, has offsets without a message."""

    def __init__(self, context: JobContext, spec: BronzeSpec) -> None:
        self._context = context
        self._spec = spec
        self.offsets = OffsetPlan()
        self._until: Offsets = {}
        self._waiting = 0
        self._lost: list[str] = []

    @cached_property
    def _cluster(self) -> KafkaCluster:
        return KafkaCluster.of(self._spec.kafka_source.kafka, self._context.settings.kafka)

    @property
    def has_more(self) -> bool:
        """Whether messages from before the start of the run are left; later messages are not read in this run."""
        planned = {(topic, at): end for topic, at, end in self._planned_ends()}
        return not self._waiting and any(
            planned.get((topic, at), 0) < end for topic, ends in self._until.items() for at, end in ends.items()
        )

    def check_delivered(self) -> None:
        """Check that the brokers answer, and have the topics.

        Raises:
            NotReadyError: no broker answers.
            BadInputError: a topic does not exist.
        """
        self._until = self._cluster.available_offsets(self._spec.kafka_source).end

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        """Plan to read the next messages that no batch has read yet.

        Raises:
            BadInputError: messages were deleted before they were read, and the spec does not allow that.
        """
        source = self._spec.kafka_source
        # Read again, because another run may have read the messages that came since this run began.
        available = self._cluster.available_offsets(source)
        self.offsets = plan_offsets(source, position.last_sources, available)
        require_nothing_lost(self._spec, self.offsets)
        self._lost += map(str, self.offsets.lost)
        last = position.last
        commit = read_commit(self._context.paths.table(self._spec.table), last.version) if last else None
        waits = waits_for_more(source, self.offsets, commit, self._context.now())
        self._waiting = self.offsets.messages + self.offsets.later if waits else 0
        if self._waiting or not self.offsets.is_new:
            return None
        return BatchPlan(self.offsets.sources)

    def read(self, session: SparkSession, spec: BronzeSpec, plan: BatchPlan) -> DataFrame:
        """Read the messages of the plan's offsets."""
        return read_messages(session, spec, self._cluster.java_conf, plan.sources)

    def is_exempt(self) -> Column:
        """Return true for a null message: it has no values to check."""
        return F.col(NULL_MESSAGE)

    def source(self) -> Column:
        """Return the partition, as `topic/0`."""
        return F.concat_ws("/", "_topic", "_partition")

    def with_position(self, records: DataFrame) -> DataFrame:
        """Add the message's offset as `_position`."""
        return records.withColumn("_position", F.col("_offset"))

    @contextmanager
    def reading_again(self, winner: Winner, plan: BatchPlan, read: Callable[[BatchPlan], None]) -> Iterator[ReadAgain]:
        """Enter with what can be read again of a committed batch: the messages that the brokers have not deleted."""
        topic_ids, offsets = plan.sources.topic_ids, plan.sources.offsets
        available = self._cluster.available_offsets(self._spec.kafka_source, offsets)

        def span(topic: str, partition: int, first: int, end: int) -> tuple[int, int]:
            is_same = available.topic_ids.get(topic) == topic_ids[topic]
            oldest = available.first[topic][partition] if is_same else end
            return min(max(first, oldest), end), end

        left = {topic: {at: span(topic, at, *ends) for at, ends in spans.items()} for topic, spans in offsets.items()}
        yield ReadAgain(BatchPlan(plan.sources.model_copy(update={"offsets": left})))

    def blame(self, error: Exception, plan: BatchPlan, spec: BronzeSpec) -> None:
        """Name the message that does not fit a strict spec; no part of a topic can be left out.

        Raises:
            BadInputError: a message does not fit a strict spec, or Spark cannot read its time.
        """
        if "long overflow" in str(error) and "ARITHMETIC_OVERFLOW" not in str(error):  # not of an expression
            raise BadInputError(
                f"{self._spec.table}: a message has a time after the year 294247, which Spark cannot read",
                "Nothing was loaded: correct its producer, such as one that sends nanoseconds; delete the messages "
                "up to it at the brokers, and accept that loss as the next run names it.",
            ) from error
        if drift := drift_of(error):
            raise BadInputError(
                f"{self._spec.table}: a message of {drift[0]} has values that fit no column: {drift[1][:300]}\nNothing "
                "was loaded: declare them in the spec, or set on_drift: rescue."
            ) from error

    def close_batch(
        self, winner: Winner, plan: BatchPlan, counts: Mapping[str, int], dropped: Sequence[DroppedRows]
    ) -> Mapping[str, FileRows]:
        """Note messages of unknown order, and write the offsets to the brokers, for lag monitors, if they take them."""
        self._context.notes.extend(order_notes(self._spec.table, plan.sources, self._context.catalog.specs.values()))
        try:
            offsets = plan.sources.offsets
            read = {topic: offsets[topic] for topic in offsets if self._spec.kafka_source.reads(topic)}
            self._cluster.record_group_offsets(f"millrace.{self._spec.table}", read)
        except KafkaException as error:
            log.warning("%s: the brokers did not take the group's offsets: %s", self._spec.table, error)
        return {}

    def add_to_report(self, report: JobReport) -> JobReport:
        """Return the report with the reached offsets, and with the messages that wait or were lost."""
        notes = [f"lost: {line}" for line in self._lost]
        if self._waiting:
            waiting = counted(self._waiting, "message waits", "messages wait")
            notes.append(f"{waiting} for more (min_bytes_per_file, allowed_latency)")
        end_offsets = {f"{topic}/{partition}": end for topic, partition, end in self._planned_ends()}
        return report.model_copy(
            update={"details": {**report.details, "offsets": end_offsets}, "notes": (*report.notes, *notes)}
        )

    def _planned_ends(self) -> Iterator[tuple[str, int, int]]:
        """Return (topic, partition, end offset) of the last plan."""
        for topic, partitions in self.offsets.ranges.items():
            for partition, (_, end) in partitions.items():
                yield topic, partition, end
