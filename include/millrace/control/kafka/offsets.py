"""Plan the Kafka offsets of a bronze batch: from the end of the last committed batch, up to the batch limit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from millrace.contracts.spec.bronze_sources import KafkaSource
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.log.batch import BatchSources, OffsetRanges
from millrace.control.log.delta_log import Commit
from millrace.errors import BadInputError

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
class Loss:
    """Messages of a partition that are gone, or a topic.

    Attributes:
        where: the topic, or `topic/partition`.
        topic_id: Kafka's id of the topic that had the messages.
        event: what happened, for people.
        offsets: the first and the last offset; None for the whole topic.
    """

    where: str
    topic_id: str
    event: str
    offsets: tuple[int, int] | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.event}"

    @property
    def key(self) -> str:
        """The loss as `accepted_losses` of a spec states it."""
        offsets = "{}-{} ".format(*self.offsets) if self.offsets else ""
        return f"{self.where} {offsets}{self.topic_id}"

    def is_accepted(self, source: KafkaSource) -> bool:
        """Return whether the spec accepts it, alone or within a longer range of offsets."""
        for text in source.accepted_losses:
            where, *offsets, topic_id = text.split()
            first, last = map(int, offsets[0].split("-")) if offsets else (0, 0)
            lost = self.offsets or (0, 0)
            if (where, topic_id) == (self.where, self.topic_id) and first <= lost[0] and lost[1] <= last:
                return True
        return False


@dataclass(frozen=True)
class OffsetPlan:
    """The messages of the next batch.

    Attributes:
        ranges: topic -> partition -> (first offset, last offset + 1). Partitions without new messages are included,
            because the next batch starts where the ranges of the last batch end; so are topics that the source no
            longer reads.
        topic_ids: topic -> its Kafka id; empty for a topic whose loss was accepted.
        lost: messages that the brokers deleted before a batch had read them.
        later: number of offsets left for later batches.
        pins_start: whether the batch is committed even without a message, to record where the reading of a topic, or of
            its new partitions, starts: it would otherwise move with the topic.
        epochs: topic -> partition -> epoch, for topics with any but 0.
        unordered: topic that got partitions -> number of messages of its old partitions, if a key may have moved
            between these before they were read.
    """

    ranges: OffsetRanges = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    lost: tuple[Loss, ...] = ()
    later: int = 0
    pins_start: bool = False
    epochs: dict[str, dict[int, int]] = field(default_factory=dict)
    unordered: dict[str, int] = field(default_factory=dict)

    @property
    def sources(self) -> BatchSources:
        """The sources of the batch."""
        return BatchSources(offsets=self.ranges, topic_ids=self.topic_ids, epochs=self.epochs, unordered=self.unordered)

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
    grown = {(topic, at) for topic, at in left if topic in last.offsets and at not in last.offsets[topic]}
    grown = {(topic, at) for topic, at in grown if not _is_another(topic, last, available)}
    # The old partitions end their epoch before the new ones begin the next, since keys have moved to these.
    behind = {topic for topic, at in left if (topic, at) not in grown and taken[topic, at] < left[topic, at]}
    if early := {where for where in grown if where[0] in behind}:
        taken = _shares({where: left[where] for where in left.keys() - early}, source.max_messages_per_batch)
    carried = last.at_same_position()
    ranges = {topic: spans for topic, spans in carried.offsets.items() if topic not in available.end}
    gone = {topic: "" for topic in ranges if source.reads(topic)}
    for (topic, partition), number in sorted(taken.items()):
        at, _ = resumed[topic, partition]
        ranges.setdefault(topic, {})[partition] = (at, at + number)
    epochs = {topic: _epochs(topic, spans, last, available) for topic, spans in ranges.items()}
    unordered = {
        topic: sum(taken[topic, at] for at in last.offsets[topic])
        for topic in sorted({topic for topic, _ in grown})
        if len(last.offsets[topic]) > 1
    }
    return OffsetPlan(
        ranges=ranges,
        topic_ids={**carried.topic_ids, **gone, **available.topic_ids},
        lost=(*_lost_topics(source, last, available), *(loss for _, loss in resumed.values() if loss)),
        later=sum(left.values()) - sum(taken.values()),
        pins_start=bool(grown - early)
        or (source.starting_offsets != "earliest" and not last.offsets.keys() >= available.end.keys()),
        epochs={topic: of_topic for topic, of_topic in epochs.items() if any(of_topic.values())},
        unordered={topic: number for topic, number in unordered.items() if number},
    )


def require_nothing_lost(spec: BronzeSpec, plan: OffsetPlan) -> None:
    """Require that no unread message was deleted, but for the losses that the spec accepts.

    Raises:
        BadInputError: messages were lost; the error lists every partition.
    """
    if losses := [loss for loss in plan.lost if not loss.is_accepted(spec.kafka_source)]:
        raise BadInputError(
            f"{spec.table}: Kafka messages are gone that were never read; nothing was loaded",
            *(f"  {loss}" for loss in losses),
            "Deliver them again as new messages. To go on without them, add to the source: accepted_losses: "
            f"[{', '.join(loss.key for loss in losses)}]",
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
) -> tuple[int, Loss | None]:
    """Return the offset to read from, and the messages that were lost."""
    first, end = available.first[topic][partition], available.end[topic][partition]
    if topic not in last.offsets:
        # A topic that a pattern matches later is read from its first offset, a named topic from `starting_offsets`.
        return (first if source.topic_pattern and last.offsets else available.start[topic][partition]), None
    if _is_another(topic, last, available):
        return first, None
    where, topic_id = f"{topic}/{partition}", available.topic_ids[topic]
    _, read_to = last.offsets[topic].get(partition, (0, 0))
    if read_to < first:
        event = f"the brokers deleted offsets {read_to} to {first - 1} before they were read"
        return first, Loss(where, topic_id, event, (read_to, first - 1))
    if read_to > end:
        event = f"it ends at offset {end}, but was read up to {read_to}"
        return end, Loss(where, topic_id, event, (end, read_to - 1))
    return read_to, None


def _lost_topics(source: KafkaSource, last: BatchSources, available: AvailableOffsets) -> Iterator[Loss]:
    for topic in filter(source.reads, last.offsets):
        topic_id = last.topic_ids.get(topic, "")
        if topic_id and topic not in available.end:
            yield Loss(topic, topic_id, "there is no such topic any more")
        elif topic_id and _is_another(topic, last, available):
            yield Loss(topic, topic_id, "it was deleted and created again; it is read from its start")


def _epochs(topic: str, partitions: Collection[int], last: BatchSources, available: AvailableOffsets) -> dict[int, int]:
    """Return the epoch of each partition: the next one where offsets start again, and of partitions that are new."""
    before, ends = last.offsets.get(topic), available.end.get(topic)
    newest = max(last.epochs.get(topic, {}).values(), default=0)
    if before is None or ends is None:
        return dict.fromkeys(partitions, newest)
    starts_again = _is_another(topic, last, available) or any(end > ends[at] for at, (_, end) in before.items())
    return {at: newest + (starts_again or at not in before) for at in partitions}


def _is_another(topic: str, last: BatchSources, available: AvailableOffsets) -> bool:
    return last.topic_ids.get(topic) != available.topic_ids[topic]


def _shares(left: Mapping[tuple[str, int], int], limit: int) -> dict[tuple[str, int], int]:
    """Divide the batch limit evenly between partitions; a partition with less than its share is taken whole."""
    taken: dict[tuple[str, int], int] = {}
    for number, where in enumerate(sorted(left, key=lambda where: left[where])):
        share = (limit - sum(taken.values())) // (len(left) - number)
        taken[where] = min(left[where], share)
    return taken
