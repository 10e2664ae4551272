"""History against a model of lists: any order, repetition, ties, deletes and nulls end in the same periods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from millrace_spark.transforms.silver import changes as C
from millrace_spark.transforms.silver.history import broken_keys, periods, with_period_action
from millrace_spark.transforms.silver.ties import TIED, tied_keys
from millrace_spark.transforms.silver.timeline import END_AT, EVENTS, START_AT, fill_nulls, late_keys, timeline
from tests.support.examples import few_or_many, settings_for
from tests.support.silver import timelines as model
from tests.support.silver.timelines import Period

KEYS = [f"k{number}" for number in range(60)]
STORED = ["key", "amount", "note"]
EVENT = "key string, seq int, amount int, note string, _is_delete boolean"
STATE = (
    "key string, amount int, note string, _sequence struct<seq:int>, _source_hash bigint, _content_hash bigint, "
    f"{START_AT} int, {END_AT} int"
)
TOMBSTONE = "key string, _sequence struct<seq:int>, _source_hash bigint"


class Event(NamedTuple):
    """One event of a key: a state of `amount` and `note`, or a delete."""

    key: str
    seq: int
    amount: int | None
    note: str | None
    is_delete: bool


@dataclass
class History:
    """A table with history, its tombstones, and the source that it is merged from; `amount` alone is tracked.

    `hashes` has the source hash of each event.
    """

    spark: SparkSession
    hashes: dict[Event, int]
    fills: bool = False
    source: list[Event] = field(default_factory=list)
    rows: dict[tuple[str, int], Row] = field(default_factory=dict)
    deleted: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    recomputed: int = 0

    def merge(self, batch: Sequence[Event]) -> None:
        self.source += batch
        events = with_order(self.spark, batch)
        current = self.spark.createDataFrame([row for row in self.rows.values() if row[END_AT] is None], STATE)
        tombstones = self.spark.createDataFrame([(key, *order) for key, order in self.deleted.items()], TOMBSTONE)
        late = {row["key"] for row in late_keys(events, current, tombstones, ["key"]).collect()}
        self.recomputed += len(late)
        recomputed = [event for event in self.source if event.key in late]
        events = events.where(~F.col("key").isin(*late)).unionByName(with_order(self.spark, recomputed))
        on_top = current.where(~F.col("key").isin(*late))
        touched = {event.key for event in batch}
        computed = periods(self._states(events, on_top, touched), ["key"], STORED, ["amount"], ["seq"])
        stored = [
            row for row in self.rows.values() if row["key"] in late or (row[END_AT] is None and row["key"] in touched)
        ]
        rows = with_period_action(computed, self.spark.createDataFrame(stored, STATE), ["key"]).collect()
        delivered = [event for event in batch if event.key not in late]
        assert {row["key"] for row in rows if row[TIED]} == tied([*delivered, *recomputed])
        self._apply(rows, len({event for event in batch if event.key not in late}))
        self._write_tombstones(batch)

    def _states(self, events: DataFrame, on_top: DataFrame, touched: Iterable[str]) -> DataFrame:
        states = timeline(events, on_top.where(F.col("key").isin(*touched)), ["key"], STORED)
        return fill_nulls(states, ["key"], STORED) if self.fills else states

    def _apply(self, rows: Sequence[Row], most_events: int) -> None:
        assert sum(row[EVENTS] or 0 for row in rows) <= most_events + len(self.source)
        for row in rows:
            at = (row["key"], row[START_AT])
            if row["_action"] == C.ABSENT:
                del self.rows[at]
            elif row["_action"] in (C.INSERT, C.UPDATE):
                assert (at in self.rows) == (row["_action"] == C.UPDATE)
                self.rows[at] = Row(**{name: row[name] for name in fields()})

    def _write_tombstones(self, batch: Sequence[Event]) -> None:
        latest = {event.key: event for event in sorted(batch, key=lambda event: (event.seq, self.hashes[event]))}
        for event in (event for event in latest.values() if event.is_delete):
            order = ((event.seq,), self.hashes[event])
            self.deleted[event.key] = max(order, self.deleted.get(event.key, order))

    def expected(self) -> dict[str, list[Period]]:
        """The model: of each key one event a sequence, put in order, and folded."""
        timelines = model.timelines(
            (event.key, event.seq, self.hashes[event], None if event.is_delete else (event.amount, event.note))
            for event in set(self.source)
        )
        folded = {
            key: model.periods(model.fill_nulls(found) if self.fills else found) for key, found in timelines.items()
        }
        return {key: found for key, found in folded.items() if found}

    def periods(self) -> dict[str, list[Period]]:
        found: dict[str, list[Period]] = defaultdict(list)
        for (key, start), row in sorted(self.rows.items()):
            found[key].append(Period(start, row[END_AT], row["amount"], row["note"]))
        return dict(found)


def fields() -> list[str]:
    return [part.split()[0] for part in STATE.split(", ")]


def with_order(spark: SparkSession, events: Sequence[Event]) -> DataFrame:
    df = spark.createDataFrame(list(events), EVENT).withColumns({"_sequence": F.struct("seq"), EVENTS: F.lit(1)})
    hashes = {"_source_hash": ["key", "seq", "amount", "note", "_is_delete"], "_content_hash": STORED}
    return df.withColumns({name: C.row_hash(columns) for name, columns in hashes.items()})


def hashes_of(spark: SparkSession, events: Iterable[Event]) -> dict[Event, int]:
    rows = with_order(spark, list(set(events))).collect()
    return {Event(*row[: len(Event._fields)]): row["_source_hash"] for row in rows}


def tied(events: Iterable[Event]) -> set[str]:
    """The keys that have events of one sequence which leave several states behind."""
    left: dict[tuple[str, int], set[Any]] = defaultdict(set)
    for event in events:
        left[event.key, event.seq].add(None if event.is_delete else (event.amount, event.note))
    return {key for (key, _), states in left.items() if len(states) > 1}


def some_events(random: Random) -> list[Event]:
    """Up to nine events of each key, close enough together to tie, repeat and overtake one another."""
    return [
        Event(
            key=key,
            seq=random.randrange(8),
            amount=random.choice([None, 1, 2]),
            note=random.choice([None, "a", "b"]),
            is_delete=random.random() < 0.25,
        )
        for key in KEYS
        for _ in range(random.randrange(1, 10))
    ]


@pytest.mark.parametrize("fills", [False, True])
@few_or_many(1, 20)
def test_any_order_and_repetition_ends_in_the_periods_of_the_model(
    spark: SparkSession, fills: bool, examples: int
) -> None:
    @settings_for(examples)
    @given(seed=st.integers(0, 2**32), batches=st.integers(2, 4))
    def holds(seed: int, batches: int) -> None:
        random = Random(seed)
        events = some_events(random)
        delivered = [*events, *random.sample(events, len(events) // 5)]
        random.shuffle(delivered)
        history = History(spark, hashes_of(spark, events), fills)
        for number in range(batches):
            history.merge(delivered[number::batches])
            assert history.periods() == history.expected()
        assert history.recomputed

    holds()


def test_a_tie_that_a_delete_of_nothing_wins_is_described_by_its_key_and_sequence(spark: SparkSession) -> None:
    both = [Event(key, 1, 5, None, is_delete=is_delete) for key in KEYS for is_delete in (False, True)]
    states = timeline(with_order(spark, both), with_order(spark, []).withColumn(START_AT, F.lit(0)), ["key"], STORED)
    found = periods(states, ["key"], STORED, ["amount"], ["seq"])
    assert 0 < found.where(F.col(START_AT).isNull()).count() < len(KEYS), "some deletes win, some states do"
    assert {row["description"] for row in tied_keys(found, ["key"]).collect()} == {
        f'key={key} at {{"seq":1}}' for key in KEYS
    }


@pytest.mark.slow
def test_events_in_their_order_never_read_the_source_again(spark: SparkSession) -> None:
    batches = [[Event(key, seq, seq // 2, "a", is_delete=False) for key in KEYS] for seq in (0, 1, 1, 2)]
    history = History(spark, hashes_of(spark, chain.from_iterable(batches)))
    for batch in batches:
        history.merge(batch)
    assert history.recomputed == 0
    assert history.periods()["k0"] == [Period(0, 2, 0, "a"), Period(2, None, 1, "a")]


def test_periods_that_overlap_are_found(spark: SparkSession) -> None:
    schema = f"key string, {START_AT} int, {END_AT} int"
    rows = [
        ("sound", 1, 3), ("sound", 3, 4), ("sound", 6, None), ("two current", 1, None), ("two current", 2, None),
        ("overlap", 1, 5), ("overlap", 4, None), ("backwards", 4, 4),
    ]  # fmt: skip
    broken = broken_keys(spark.createDataFrame(rows, schema), ["key"]).collect()
    assert {(row["key"], row["periods"]) for row in broken} == {("two current", 2), ("overlap", 2), ("backwards", 1)}
