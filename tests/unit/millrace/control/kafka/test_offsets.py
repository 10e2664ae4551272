"""Which Kafka messages a batch takes, held against a model of a topic that lives on while batches are made."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.contracts.spec.bronze_sources import KafkaSource
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.kafka.offsets import (
    AvailableOffsets,
    OffsetPlan,
    plan_offsets,
    require_nothing_lost,
    waits_for_more,
)
from millrace.control.log.batch import BatchSources
from millrace.control.log.delta_log import Commit
from millrace.errors import BadInputError
from tests.support.documents.specs import bronze_spec

NOW = datetime(2013, 1, 1, tzinfo=UTC)


def source(**changes: Any) -> KafkaSource:
    return KafkaSource.model_validate({"kafka": "main", "topics": ["t"], "format": "json", **changes})


def held(
    end: dict[int, int], first: dict[int, int] | None = None, topic: str = "t", known_as: str = "1"
) -> AvailableOffsets:
    oldest = {partition: (first or {}).get(partition, 0) for partition in end}
    return AvailableOffsets({topic: known_as}, {topic: oldest}, {topic: end}, {topic: oldest})


def after(ranges: dict[int, tuple[int, int]], known_as: str = "1") -> BatchSources:
    return BatchSources(offsets={"t": ranges}, topic_ids={"t": known_as})


GROWTH = st.lists(
    st.tuples(st.sampled_from(["send", "grow", "batch"]), st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=15
)


@settings(max_examples=20)
@given(GROWTH, st.integers(1, 7))
def test_batches_take_every_message_once_and_none_is_larger_than_allowed(steps: list[Any], limit: int) -> None:
    limited = source(max_messages_per_batch=limit)
    ends, last, taken = {0: 0}, BatchSources(), []
    for what, partition, number in [*steps, *[("batch", 0, 0)] * 61]:
        if what == "grow":
            ends.setdefault(max(ends) + 1, 0)
        elif what == "send":
            ends[partition % len(ends)] += number
        else:
            found = plan_offsets(limited, last, held(dict(ends)))
            assert found.messages <= limit
            assert not found.lost
            if found.is_new:
                taken += [(p, at) for p, span in found.ranges["t"].items() for at in range(*span)]
                last = BatchSources(offsets=found.ranges, topic_ids={"t": "1"})
    assert (found.is_new, found.later) == (False, 0)
    assert sorted(taken) == [(partition, at) for partition, end in ends.items() for at in range(end)]


def test_a_large_partition_does_not_keep_small_ones_waiting() -> None:
    found = plan_offsets(source(max_messages_per_batch=100), BatchSources(), held({0: 1_000_000, 1: 10, 2: 40}))
    assert found.ranges == {"t": {0: (0, 50), 1: (0, 10), 2: (0, 40)}}
    assert found.later == 999_950


@pytest.mark.parametrize(
    ("last", "now", "lost"),
    [
        (
            after({0: (0, 5)}),
            held({0: 9}, first={0: 7}),
            "t/0: the brokers deleted offsets 5 to 6 before they were read",
        ),
        (after({0: (0, 5)}), held({0: 3}), "t/0: it ends at offset 3, but was read up to 5"),
        (
            after({0: (0, 5)}),
            held({0: 9}, known_as="2"),
            "t: it was deleted and created again; it is read from its start",
        ),
        (after({0: (0, 5)}), held({0: 9}, topic="other"), "t: there is no such topic any more"),
        (
            after({0: (0, 5)}),
            held({0: 5, 1: 9}, first={1: 4}),
            "t/1: the brokers deleted offsets 0 to 3",
        ),
    ],
)
def test_whatever_was_lost_is_told(last: BatchSources, now: AvailableOffsets, lost: str) -> None:
    found = plan_offsets(source(), last, now)
    (told,) = found.lost
    assert str(told).startswith(lost)
    assert found.is_new
    spec = bronze_spec(source={"kafka": "main", "topics": ["t"], "format": "json"})
    with pytest.raises(BadInputError, match=r"(?s)bronze\.orders: Kafka messages are gone.*" + lost[:3]) as refused:
        require_nothing_lost(spec, found)
    _, key = str(refused.value).split("accepted_losses: ")
    require_nothing_lost(accepting(key.strip("[]")), found)


def accepting(*losses: str) -> BronzeSpec:
    source = {"kafka": "main", "topics": ["t"], "format": "json", "accepted_losses": losses}
    return bronze_spec(source=source)


def test_a_loss_is_accepted_by_its_topic_and_range_and_no_other_one_with_it() -> None:
    found = plan_offsets(
        source(), after({0: (0, 5), 1: (0, 5)}, "q/+"), held({0: 9, 1: 9}, first={0: 7, 1: 8}, known_as="q/+")
    )
    assert [loss.key for loss in found.lost] == ["t/0 5-6 q/+", "t/1 5-7 q/+"]
    require_nothing_lost(accepting("t/0 0-6 q/+", "t/1 5-7 q/+"), found)
    for accepted in ("t/0 5-6 q/+",), ("t/0 5-6 q/+", "t/1 5-6 q/+"), ("t/0 5-6 q/+", "t/1 5-7 q/-"), ("t q/+",):
        with pytest.raises(BadInputError, match="t/1: the brokers deleted offsets 5 to 7"):
            require_nothing_lost(accepting(*accepted), found)


def test_a_topic_that_the_spec_leaves_out_is_no_loss_and_keeps_its_position_for_when_it_comes_back() -> None:
    both = BatchSources(offsets={"t": {0: (0, 5)}, "b": {0: (0, 8)}}, topic_ids={"t": "1", "b": "2"})
    left_out = plan_offsets(source(), both, held({0: 6}))
    assert (left_out.lost, left_out.ranges) == ((), {"t": {0: (5, 6)}, "b": {0: (8, 8)}})
    back = plan_offsets(
        source(topics=["b"]),
        BatchSources(offsets=left_out.ranges, topic_ids=left_out.topic_ids),
        held({0: 9}, topic="b", known_as="2"),
    )
    assert (back.lost, back.ranges) == ((), {"b": {0: (8, 9)}, "t": {0: (6, 6)}})


def test_a_matched_topic_that_is_gone_is_told_once_and_read_from_its_start_when_it_is_made_again() -> None:
    pattern = source(topics=[], topic_pattern="t")
    gone = plan_offsets(pattern, after({0: (0, 5)}), AvailableOffsets())
    assert [loss.key for loss in gone.lost] == ["t 1"]
    accepted = BatchSources(offsets=gone.ranges, topic_ids=gone.topic_ids)
    assert not plan_offsets(pattern, accepted, AvailableOffsets()).is_new
    again = plan_offsets(pattern, accepted, held({0: 3}, known_as="2"))
    assert (again.lost, again.ranges) == ((), {"t": {0: (0, 3)}})


def test_what_retention_deleted_after_it_was_read_is_no_loss() -> None:
    found = plan_offsets(source(), after({0: (0, 5)}), held({0: 9}, first={0: 5}))
    assert (found.lost, found.ranges) == ((), {"t": {0: (5, 9)}})


def test_a_topic_that_a_spec_adds_starts_where_the_spec_says_and_one_that_came_to_match_at_its_start() -> None:
    both = AvailableOffsets(
        topic_ids={"t": "1", "new": "2"},
        first={"t": {0: 0}, "new": {0: 0}},
        end={"t": {0: 5}, "new": {0: 8}},
        start={"t": {0: 5}, "new": {0: 8}},
    )
    named = plan_offsets(source(topics=["t", "new"], starting_offsets="latest"), after({0: (0, 5)}), both)
    assert (named.ranges["new"], named.pins_start) == ({0: (8, 8)}, True)
    pattern = source(topics=[], topic_pattern=".*", starting_offsets="latest")
    assert plan_offsets(pattern, after({0: (0, 5)}), both).ranges["new"] == {0: (0, 8)}


def test_offsets_that_start_again_are_of_the_next_epoch() -> None:
    read = BatchSources(offsets={"t": {0: (0, 5)}}, topic_ids={"t": "1"}, epochs={"t": {0: 2}})
    assert plan_offsets(source(), read, held({0: 6})).epochs == {"t": {0: 2}}
    assert plan_offsets(source(), read, held({0: 6}, known_as="2")).epochs == {"t": {0: 3}}
    assert plan_offsets(source(), read, held({0: 3})).epochs == {"t": {0: 3}}, "its newest messages were lost"
    assert plan_offsets(source(), after({0: (0, 5)}), held({0: 6})).epochs == {}


def test_new_partitions_begin_the_next_epoch_once_the_old_ones_are_read() -> None:
    limited, grown = source(max_messages_per_batch=4), held({0: 8, 1: 7, 2: 3})
    first = plan_offsets(limited, after({0: (0, 5), 1: (0, 5)}), grown)
    assert first.ranges == {"t": {0: (5, 7), 1: (5, 7)}}
    assert (first.epochs, first.unordered, first.later) == ({}, {"t": 4}, 4)
    second = plan_offsets(limited, first.sources, grown)
    assert second.ranges == {"t": {0: (7, 8), 1: (7, 7), 2: (0, 3)}}
    assert (second.epochs, second.unordered) == ({"t": {0: 0, 1: 0, 2: 1}}, {"t": 1})
    third = plan_offsets(limited, second.sources.at_same_position(), held({0: 9, 1: 7, 2: 3}))
    assert (third.epochs, third.unordered) == ({"t": {0: 1, 1: 1, 2: 1}}, {})


def test_the_growth_of_a_topic_is_pinned_when_it_is_seen_and_of_one_partition_no_order_is_unknown() -> None:
    found = plan_offsets(source(), after({0: (0, 5)}), held({0: 5, 1: 0}))
    assert (found.is_new, found.epochs) == (True, {"t": {0: 0, 1: 1}})
    assert not plan_offsets(source(), found.sources, held({0: 5, 1: 0})).is_new
    assert plan_offsets(source(), after({0: (0, 5)}), held({0: 8, 1: 0})).unordered == {}


def test_few_messages_wait_until_the_latency_is_over() -> None:
    last = Commit(3, NOW, metrics={"numOutputRows": "1000", "numOutputBytes": "100000"})
    patient = source(min_bytes_per_file="1 MiB", allowed_latency="10 minutes")

    def waits(messages: int, minutes: int) -> bool:
        plan = OffsetPlan({"t": {0: (0, messages)}})
        assert not waits_for_more(source(), plan, last, NOW)
        assert not waits_for_more(patient, plan, None, NOW)
        return waits_for_more(patient, plan, last, NOW + timedelta(minutes=minutes))

    assert waits(10, 1)
    assert not waits(10, 10), "few, but late"
    assert not waits(11_000, 1), "enough"
    assert not waits(10, -1), "the clock went back"
