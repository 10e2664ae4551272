"""Plan the Kafka offsets of a bronze batch: from the end of the last committed batch, up to the batch limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from include.contracts.spec.bronze_sources import KafkaSource
from include.contracts.spec.table_spec import BronzeSpec
from include.control.log.batch import BatchSources, OffsetRanges
from include.control.log.delta_log import Commit
from include.errors import BadInputError

Offsets = Mapping[str, Mapping[int, int]]
"""topic -> partition -> offset."""


@dataclass(frozen=True)
class AvailableOffsets:
    """The offsets of a source's topics that the brokers still have.

    Attributes:
        topic_ids: topic -> Kafka's id; a topic that was deleted and created again has another id.
        first: the first offset of each partition.
        end: the last readable offset of each partition, plus one.
        start: the offsets of the source's `starting_offsets`.
    """

    topic_ids: Mapping[str, str] = field(default_factory=dict)
    first: Offsets = field(default_factory=dict)
    end: Offsets = field(default_factory=dict)
    start: Offsets = field(default_factory=dict)


@dataclass(frozen=True)
class OffsetPlan:
    """The messages of the next batch.

    Attributes:
        ranges: topic -> partition -> (first offset, last offset + 1). Partitions without new messages are included,
            because the next batch starts where the ranges of the last batch end.
        lost: messages that the brokers deleted before a batch had read them, one line per partition or topic.
        later: number of offsets left for later batches.
        pins_start: whether the batch is committed even without a message, to record where the reading of a topic
            starts: it would otherwise move with the topic.
    """

    ranges: OffsetRanges = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    later: int = 0
    pins_start: bool = False

    @property
    def is_new(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.messages or self.lost or self.pins_start)

    @property
    def messages(self) -> int:
        """Number of offsets of the next batch; some may hold no message (compaction, transaction markers)."""
        return sum(end - first for partitions in self.ranges.values() for first, end in partitions.values())

    @property
    def partitions(self) -> int:
        """Number of partitions with new messages."""
        return sum(first < end for partitions in self.ranges.values() for first, end in partitions.values())


def plan_offsets(source: KafkaSource, last: BatchSources, available: AvailableOffsets) -> OffsetPlan:
    """Plan the batch after `last`, with as many of the available messages as the source allows per batch."""
    resumed = {
        (topic, partition): _resume(source, topic, partition, last, available)
        for topic, ends in sorted(available.end.items())
        for partition in sorted(ends)
    }
    left = {(topic, partition): available.end[topic][partition] - at for (topic, partition), (at, _) in resumed.items()}
    taken = _shares(left, source.max_messages_per_batch)
    ranges: OffsetRanges = {}
    for (topic, partition), (at, _) in resumed.items():
        ranges.setdefault(topic, {})[partition] = (at, at + taken[topic, partition])
    return OffsetPlan(
        ranges=ranges,
        lost=(*_lost_topics(last, available), *(line for _, line in resumed.values() if line)),
        later=sum(left.values()) - sum(taken.values()),
        pins_start=source.starting_offsets != "earliest" and not last.offsets.keys() >= available.end.keys(),
    )


def require_nothing_lost(spec: BronzeSpec, plan: OffsetPlan) -> None:
    """Require that no unread message was deleted, unless the spec accepts that loss.

    Raises:
        BadInputError: messages were lost; the error lists every partition.
    """
    if plan.lost and spec.kafka_source.fail_on_data_loss:
        lines = [f"  {line}" for line in plan.lost]
        raise BadInputError(
            f"{spec.table}: Kafka messages are gone that were never read; nothing was loaded",
            *lines,
            "Deliver them again as new messages. To go on without them, set source.fail_on_data_loss: false until a "
            "run has ended well.",
        )


def waits_for_more(source: KafkaSource, plan: OffsetPlan, last: Commit | None, now: datetime) -> bool:
    """Whether the new messages are too few for a file of `min_bytes_per_file` and `allowed_latency` is not over.

    The size of a message is estimated from the last batch.
    """
    rows = int(last.metrics.get("numOutputRows", 0)) if last else 0
    if last is None or not (rows and source.min_bytes_per_file) or plan.lost or plan.pins_start:
        return False
    expected = (plan.messages + plan.later) * int(last.metrics.get("numOutputBytes", 0)) / rows
    # A clock that was set back ends the wait; it must not make the wait longer.
    return expected < source.min_bytes_per_file and timedelta() <= now - last.at < source.allowed_latency


def _resume(
    source: KafkaSource, topic: str, partition: int, last: BatchSources, available: AvailableOffsets
) -> tuple[int, str]:
    """Return the offset to read from, and a line about the messages that were lost, or an empty text."""
    first, end = available.first[topic][partition], available.end[topic][partition]
    if topic not in last.offsets:
        # A topic that a pattern matches later is read from its first offset, a named topic from `starting_offsets`.
        return (first if source.topic_pattern and last.offsets else available.start[topic][partition]), ""
    if _is_another(topic, last, available):
        return first, ""
    _, read_to = last.offsets[topic].get(partition, (0, 0))
    if read_to < first:
        return first, f"{topic}/{partition}: the brokers deleted offsets {read_to} to {first - 1} before they were read"
    if read_to > end:
        return end, f"{topic}/{partition}: it ends at offset {end}, but was read up to {read_to}"
    return read_to, ""


def _lost_topics(last: BatchSources, available: AvailableOffsets) -> Iterator[str]:
    for topic in last.offsets:
        if topic not in available.end:
            yield f"{topic}: there is no such topic any more"
        elif _is_another(topic, last, available):
            yield f"{topic}: it was deleted and created again; it is read from its start"


def _is_another(topic: str, last: BatchSources, available: AvailableOffsets) -> bool:
    return topic in last.offsets and last.topic_ids.get(topic) != available.topic_ids[topic]


def _shares(left: Mapping[tuple[str, int], int], limit: int) -> dict[tuple[str, int], int]:
    """Divide the batch limit evenly between partitions; a partition with less than its share is taken whole."""
    taken: dict[tuple[str, int], int] = {}
    for number, where in enumerate(sorted(left, key=lambda where: left[where])):
        share = (limit - sum(taken.values())) // (len(left) - number)
        taken[where] = min(left[where], share)
    return taken
