"""Which Kafka messages a bronze batch reads: from where the last committed one ended, as many as a batch takes."""

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
class HeldOffsets:
    """What the brokers hold of a source's topics.

    Attributes:
        topic_ids: topic -> Kafka's id of it; another id under the same name is another topic.
        first: the first offset that each partition still has.
        end: one after the last offset of each partition that can be read.
        start: where the source's `starting_offsets` point.
    """

    topic_ids: Mapping[str, str] = field(default_factory=dict)
    first: Offsets = field(default_factory=dict)
    end: Offsets = field(default_factory=dict)
    start: Offsets = field(default_factory=dict)


@dataclass(frozen=True)
class OffsetPlan:
    """The messages of the next batch.

    Attributes:
        ranges: topic -> partition -> (first offset, one after the last). Partitions with nothing new are among them:
            the last batch's ranges alone say where the next one starts.
        lost: what the brokers deleted before any batch had read it, a line a partition or topic.
        later: offsets left for the batches after the next one.
        pins_start: the batch is made for its ranges, even without a message: where a topic's reading starts would
            otherwise move on with the topic.
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
        """Offsets of the next batch; some may hold no message (compaction, marks of transactions)."""
        return count(self.ranges)


def count(ranges: OffsetRanges) -> int:
    """The offsets in all ranges.

    >>> count({"orders": {0: (10, 15), 1: (7, 7)}})
    5
    """
    return sum(end - first for partitions in ranges.values() for first, end in partitions.values())


def count_partitions(ranges: OffsetRanges) -> int:
    """How many partitions the ranges have a message of.

    >>> count_partitions({"orders": {0: (10, 15), 1: (7, 7)}})
    1
    """
    return sum(first < end for partitions in ranges.values() for first, end in partitions.values())


def plan_offsets(source: KafkaSource, last: BatchSources, held: HeldOffsets) -> OffsetPlan:
    """The batch after one that has read `last`: as many as the source allows of the messages that the brokers hold."""
    resumed = {
        (topic, partition): _resume(source, topic, partition, last, held)
        for topic, ends in sorted(held.end.items())
        for partition in sorted(ends)
    }
    left = {(topic, partition): held.end[topic][partition] - at for (topic, partition), (at, _) in resumed.items()}
    taken = _shares(left, source.max_messages_per_batch)
    ranges: OffsetRanges = {}
    for (topic, partition), (at, _) in resumed.items():
        ranges.setdefault(topic, {})[partition] = (at, at + taken[topic, partition])
    return OffsetPlan(
        ranges=ranges,
        lost=(*_lost_topics(last, held), *(line for _, line in resumed.values() if line)),
        later=sum(left.values()) - sum(taken.values()),
        pins_start=source.starting_offsets != "earliest" and not last.offsets.keys() >= held.end.keys(),
    )


def require_nothing_lost(spec: BronzeSpec, plan: OffsetPlan) -> None:
    """Stop where messages are gone that no batch has read, unless the spec lets a run go on without them.

    Raises:
        BadInputError: with every partition that lost some.
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
    """Whether all that is new would make a smaller file than `min_bytes_per_file`, and `allowed_latency` is not over.

    How large a message becomes is judged by those of the last batch.
    """
    rows = int(last.metrics.get("numOutputRows", 0)) if last else 0
    if last is None or not (rows and source.min_bytes_per_file) or plan.lost or plan.pins_start:
        return False
    expected = (plan.messages + plan.later) * int(last.metrics.get("numOutputBytes", 0)) / rows
    # A clock that went back since ends the wait, instead of making it as long as it went.
    return expected < source.min_bytes_per_file and timedelta() <= now - last.at < source.allowed_latency


def _resume(source: KafkaSource, topic: str, partition: int, last: BatchSources, held: HeldOffsets) -> tuple[int, str]:
    """(where to go on in a partition, what of it was lost)."""
    first, end = held.first[topic][partition], held.end[topic][partition]
    if topic not in last.offsets:
        # A topic that came to match later is read whole; one that a spec names is read from where the spec says.
        return (first if source.topic_pattern and last.offsets else held.start[topic][partition]), ""
    if _is_another(topic, last, held):
        return first, ""
    _, read_to = last.offsets[topic].get(partition, (0, 0))
    if read_to < first:
        return first, f"{topic}/{partition}: the brokers deleted offsets {read_to} to {first - 1} before they were read"
    if read_to > end:
        return end, f"{topic}/{partition}: it ends at offset {end}, but was read up to {read_to}"
    return read_to, ""


def _lost_topics(last: BatchSources, held: HeldOffsets) -> Iterator[str]:
    for topic in last.offsets:
        if topic not in held.end:
            yield f"{topic}: there is no such topic any more"
        elif _is_another(topic, last, held):
            yield f"{topic}: it was deleted and created again; it is read from its start"


def _is_another(topic: str, last: BatchSources, held: HeldOffsets) -> bool:
    return topic in last.offsets and last.topic_ids.get(topic) != held.topic_ids[topic]


def _shares(left: Mapping[tuple[str, int], int], limit: int) -> dict[tuple[str, int], int]:
    """How many offsets a batch takes of each partition: as even as can be, small partitions whole."""
    taken: dict[tuple[str, int], int] = {}
    for number, where in enumerate(sorted(left, key=lambda where: left[where])):
        share = (limit - sum(taken.values())) // (len(left) - number)
        taken[where] = min(left[where], share)
    return taken
