"""Kafka topics as the source of a bronze table."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from confluent_kafka import KafkaException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from include.contracts.job.report import FileRows, JobReport
from include.contracts.spec.table_spec import BronzeSpec
from include.control.kafka.cluster import KafkaCluster
from include.control.kafka.offsets import OffsetPlan, Offsets, plan_offsets, require_nothing_lost, waits_for_more
from include.control.log.batch import BatchSources, StreamPosition, Winner
from include.control.log.delta_log import read_commit
from include.errors import BadInputError
from spark_jobs.delta_io.kafka_reads import read_messages
from spark_jobs.layers.refused import Dropped
from spark_jobs.protocol.batches import BatchPlan
from spark_jobs.runtime.context import JobContext
from spark_jobs.transforms.drift import drift_of
from spark_jobs.transforms.messages import NULL_MESSAGE, origin_columns

log = logging.getLogger(__name__)


class KafkaRecords:
    """The `BronzeRecords` of Kafka topics.

    Attributes:
        offsets: what the last plan found.
    """

    def __init__(self, context: JobContext, spec: BronzeSpec) -> None:
        self._context = context
        self._spec = spec
        self.offsets = OffsetPlan()
        self._until: Offsets = {}
        self._waiting = 0
        self._lost: list[str] = []

    @cached_property
    def _cluster(self) -> KafkaCluster:
        return KafkaCluster.of(self._spec.kafka_source.kafka, self._context.kafka)

    @property
    def origin(self) -> Mapping[str, str]:
        """Topic, partition, offset, time and key of the message, and its headers where the spec asks for them."""
        return origin_columns(self._spec.kafka_source)

    @property
    def has_more(self) -> bool:
        """Whether messages are left that were there when the run began: it ends with them, however fast others come."""
        return not self._waiting and any(
            end < self._until.get(topic, {}).get(at, 0) for topic, at, end in self._reached()
        )

    def check_delivered(self) -> None:
        """Whether the brokers answer, and have the topics.

        Raises:
            NotReadyError: no broker answers.
            BadInputError: a topic does not exist.
        """
        self._until = self._cluster.available_offsets(self._spec.kafka_source).end

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        """The next messages that no batch has read yet.

        Raises:
            BadInputError: some were deleted before they were read, and the spec forbids to go on without them.
        """
        source = self._spec.kafka_source
        # Asked anew, after the position was resolved: another run may have read what came since this one began.
        available = self._cluster.available_offsets(source)
        self.offsets = plan_offsets(source, position.last_sources, available)
        require_nothing_lost(self._spec, self.offsets)
        self._lost += self.offsets.lost
        last = position.last
        commit = read_commit(self._context.paths.table(self._spec.table), last.version) if last else None
        waits = waits_for_more(source, self.offsets, commit, self._context.now())
        self._waiting = self.offsets.messages + self.offsets.later if waits else 0
        if self._waiting or not self.offsets.is_new:
            return None
        return BatchPlan(BatchSources(offsets=self.offsets.ranges, topic_ids=dict(available.topic_ids)))

    def read(self, session: SparkSession, spec: BronzeSpec, plan: BatchPlan) -> DataFrame:
        """The messages of the plan's offsets."""
        return read_messages(session, spec, self._cluster.conf, plan.sources.offsets)

    def exempt(self) -> Column:
        """A null message has no values to judge."""
        return F.col(NULL_MESSAGE)

    def source(self) -> Column:
        """The partition, as `topic/0`."""
        return F.concat_ws("/", "_topic", "_partition")

    def placed(self, records: DataFrame) -> DataFrame:
        """Add the message's offset as `_position`."""
        return records.withColumn("_position", F.col("_offset"))

    @property
    def state_their_rows(self) -> bool:
        """Offsets are no count: a topic that is compacted, or written in transactions, leaves some out."""
        return False

    def stated_rows(self, plan: BatchPlan) -> int:
        """No message is counted so.

        Raises:
            TypeError: always.
        """
        raise TypeError("a Kafka topic does not say how many messages lie between two offsets")

    def require_as_planned(self, plan: BatchPlan) -> None:
        """Whether the brokers still hold what a batch has read.

        Raises:
            BadInputError: some of it was deleted since, or the topic was created anew.
        """
        available = self._cluster.available_offsets(self._spec.kafka_source)
        for topic, partitions in plan.sources.offsets.items():
            for partition, (first, end) in partitions.items():
                oldest = available.first.get(topic, {}).get(partition, end)
                if first < end and (oldest > first or available.topic_ids.get(topic) != plan.sources.topic_ids[topic]):
                    msg = (
                        f"{self._spec.table}: {topic}/{partition} no longer holds offsets {first} to {end - 1}\n"
                        "A batch has read and committed them before its driver died; what it refused cannot be told "
                        "any more. Restore the table to the version before that batch."
                    )
                    raise BadInputError(msg)

    def blame(self, error: Exception, plan: BatchPlan) -> None:
        """No part of a topic is left out: the run fails, and says why.

        Raises:
            BadInputError: a message does not fit a strict spec.
        """
        if drift := drift_of(error):
            msg = (
                f"{self._spec.table}: a message of {drift[0]} has values that fit no column: {drift[1][:300]}\nNothing "
                "was loaded: declare them in the spec, or set on_drift: rescue."
            )
            raise BadInputError(msg) from error

    def closed(
        self, winner: Winner, plan: BatchPlan, counts: Mapping[str, int], left_out: Sequence[Dropped]
    ) -> Mapping[str, FileRows]:
        """Tell the brokers how far the table has read, for their lag monitors: a metric, which may fail."""
        try:
            self._cluster.record_group_offsets(f"millrace.{self._spec.table}", plan.sources.offsets)
        except KafkaException as error:
            log.warning("%s: the brokers did not take the group's offsets: %s", self._spec.table, error)
        return {}

    def ended(self, report: JobReport) -> JobReport:
        """The report with the offsets that were reached, and what waits or was lost."""
        notes = [f"lost: {line}" for line in self._lost]
        if self._waiting:
            notes.append(f"{self._waiting:,} messages wait for more (min_bytes_per_file, allowed_latency)")
        reached = {f"{topic}/{partition}": end for topic, partition, end in self._reached()}
        return report.model_copy(
            update={"details": {**report.details, "offsets": reached}, "notes": (*report.notes, *notes)}
        )

    def _reached(self) -> Iterator[tuple[str, int, int]]:
        """(topic, partition, the offset up to which the last planned batch reads)."""
        for topic, partitions in self.offsets.ranges.items():
            for partition, (_, end) in partitions.items():
                yield topic, partition, end
