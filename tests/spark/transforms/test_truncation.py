"""Truncates against a dict model: what is no later than the last one is gone, in whatever order it comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from millrace_spark.transforms.silver import changes as C
from millrace_spark.transforms.silver.truncation import truncates, with_truncates
from tests.support.examples import few_or_many, settings_for

KEYS = [f"k{number}" for number in range(60)]
STATE = "key string, _sequence struct<seq:int>, _source_hash bigint, _content_hash bigint"


class Event(NamedTuple):
    """A state of a key, a delete of it (no amount), or a truncate (no key)."""

    key: str | None
    seq: int
    amount: int | None


@dataclass
class Target:
    """A table that keeps last states, and its tombstones, the truncate among them under no key."""

    spark: SparkSession
    rows: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    tombstones: dict[str | None, tuple[Any, ...]] = field(default_factory=dict)

    def merge(self, batch: Sequence[Event], recompute: Column | None = None) -> None:
        events = self.spark.createDataFrame(list(batch), "key string, seq int, amount int")
        events = events.withColumns({"_sequence": F.struct("seq"), "_is_delete": F.col("amount").isNull()})
        content = C.row_hash(["key", "seq", "amount"])
        latest = C.latest_per_key(events.withColumns({"_source_hash": content, "_content_hash": content}), ["key"])
        state, tombstones = (self._frame(rows) for rows in (self.rows, self.tombstones))
        actions = C.with_action(latest, state, tombstones, ["key"], recompute)
        rows = with_truncates(actions, state, truncates(latest, tombstones, ["key"]), ["key"])
        for row in rows.collect():
            self._apply(row["key"], row["_action"], (row["_sequence"], row["_source_hash"], row["_content_hash"]))
        for row in latest.where("_is_delete").collect():
            deleted = (row["_sequence"], row["_source_hash"], row["_content_hash"])
            self.tombstones[row["key"]] = max(deleted, self.tombstones.get(row["key"], deleted))

    def _apply(self, key: str, action: str, state: tuple[Any, ...]) -> None:
        if action in (C.DELETE, C.ABSENT):
            del self.rows[key]
        elif action in (C.INSERT, C.UPDATE):
            assert (key in self.rows) == (action == C.UPDATE)
            self.rows[key] = state

    def _frame(self, rows: dict[Any, tuple[Any, ...]]) -> Any:
        return self.spark.createDataFrame([(key, *state) for key, state in rows.items()], STATE)


def expected(events: Sequence[Event]) -> dict[str, int]:
    """key -> sequence of its last state after the last truncate; no two events of a key have the same sequence."""
    truncated = max((event.seq for event in events if event.key is None), default=-1)
    last: dict[str, Event] = {}
    for event in sorted(events, key=lambda event: event.seq):
        if event.key is not None and event.seq > truncated:
            last[event.key] = event
    return {key: event.seq for key, event in last.items() if event.amount is not None}


def some_events(random: Random) -> list[Event]:
    of_keys = [
        Event(key, seq, random.choice([None, 1, 2]))
        for key in KEYS
        for seq in random.sample(range(12), random.randrange(1, 6))
    ]
    return [*of_keys, *(Event(None, seq, None) for seq in random.sample(range(10), 3))]


@few_or_many(1, 20)
def test_any_order_ends_in_what_came_after_the_last_truncate(spark: SparkSession, examples: int) -> None:
    @settings_for(examples)
    @given(seed=st.integers(0, 2**32))
    def holds(seed: int) -> None:
        random = Random(seed)
        events = some_events(random)
        random.shuffle(events)
        target = Target(spark)
        for number in range(3):
            target.merge(events[number::3])
            seen = [event for part in range(number + 1) for event in events[part::3]]
            assert {key: state[0]["seq"] for key, state in target.rows.items()} == expected(seen)
        assert target.rows, "some keys came after it"

    holds()


def test_a_key_of_which_only_truncated_events_are_left_in_the_source_goes(spark: SparkSession) -> None:
    target = Target(spark)
    target.merge([Event(None, 5, None), Event("k", 9, 1), Event("l", 9, 1), Event("other", 8, 1)])
    target.merge([Event("k", 3, 1), Event("l", 3, None)], recompute=F.lit(True))
    assert set(target.rows) == {"other"}
