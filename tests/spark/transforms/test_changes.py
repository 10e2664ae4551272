"""Change data against a dict model: any order, repetition, ties and deletes end in the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace_spark.transforms.silver import changes as C
from millrace_spark.transforms.silver.ties import GREATEST_HASH, tied_keys
from tests.support.examples import few_or_many, many, settings_for

COLUMNS = "key string, seq int, amount int, _is_delete boolean"
STATE = "key string, _sequence struct<seq:int>, _source_hash bigint, _content_hash bigint, amount int"

KEYS = [f"k{number}" for number in range(75)]

State = tuple[int, int, int, int | None]
"""seq, source hash, content hash, amount."""


@dataclass(frozen=True)
class Event:
    """One event of a key: an upsert of an amount, or a delete."""

    key: str
    seq: int
    amount: int | None


@dataclass
class Target:
    """A target table and its tombstones by key; `factor` is how its spec reads the amount of an event."""

    factor: int = 1
    rows: dict[str, State] = field(default_factory=dict)
    deleted: dict[str, State] = field(default_factory=dict)
    applied: int = 0
    factors: dict[str, int] = field(default_factory=dict)

    def merge(self, spark: SparkSession, batch: Sequence[Event]) -> None:
        latest = C.latest_per_key(with_order(spark, batch, self.factor), ["key"])
        rows = C.with_action(latest, frame(spark, self.rows), frame(spark, self.deleted), ["key"]).collect()
        assert {row["key"] for row in rows if row["_tied"]} == self._tied_by(batch)
        for row in rows:
            state = (row["_sequence"]["seq"], row["_source_hash"], row["_content_hash"], row["amount"])
            self._apply(row["key"], row["_action"], state, is_delete=row["_is_delete"])

    def _apply(self, key: str, action: str, state: State, *, is_delete: bool) -> None:
        if action in (C.INSERT, C.UPDATE):
            self.rows[key], self.factors[key] = state, self.factor
        elif action == C.DELETE:
            del self.rows[key]
        if is_delete:
            self.deleted[key] = max(state, self.deleted.get(key, state), key=lambda state: state[:2])
        self.applied += action in C.CHANGES

    def _tied_by(self, batch: Sequence[Event]) -> set[str]:
        """The keys of whose greatest sequence there are several events, in the batch or with the stored one."""
        tied = set()
        for key in {event.key for event in batch}:
            last = max(event.seq for event in batch if event.key == key)
            left = {event.amount for event in batch if (event.key, event.seq) == (key, last)}
            stored = [(self.deleted[key], None)] if key in self.deleted else []
            stored += [(self.rows[key], self.rows[key][3])] if key in self.rows else []
            newest = max(stored, key=lambda pair: pair[0][:2], default=None)
            if newest and newest[0][0] == last:
                left.add(None if newest[1] is None else newest[1] // self.factors[key])
            if len(left) > 1:
                tied.add(key)
        return tied

    def amounts(self) -> dict[str, tuple[int, int | None]]:
        return {key: (seq, amount) for key, (seq, _, _, amount) in self.rows.items()}


def with_order(spark: SparkSession, batch: Sequence[Event], factor: int = 1) -> DataFrame:
    rows = [(event.key, event.seq, event.amount, event.amount is None) for event in batch]
    events = spark.createDataFrame(rows, COLUMNS).withColumn("_sequence", F.struct("seq"))
    received = events.withColumn("_source_hash", C.row_hash(["key", "seq", "amount"]))
    read = received.withColumn("amount", F.col("amount") * factor)
    return read.withColumn("_content_hash", C.row_hash(["key", "amount"]))


def frame(spark: SparkSession, rows: dict[str, State]) -> DataFrame:
    return spark.createDataFrame([(key, (seq,), *rest) for key, (seq, *rest) in rows.items()], STATE)


def greatest_events(spark: SparkSession, events: Sequence[Event]) -> dict[str, Event]:
    """The greatest event of each key by (seq, source hash), found without a merge."""
    hashes = [row["_source_hash"] for row in with_order(spark, events).collect()]
    ordered = sorted(zip(events, hashes, strict=True), key=lambda pair: (pair[0].seq, pair[1]))
    return {event.key: event for event, _ in ordered}


EVENTS = st.builds(Event, st.sampled_from(KEYS), st.integers(1, 4), st.one_of(st.none(), st.integers(0, 3)))
BATCH = many(EVENTS, 250, 300)
"""About four events a key: early and late, tied, repeated, deletes among them. A Spark job costs as much for one key as
for all of them."""


@few_or_many(1, 20)
def test_any_order_and_repetition_of_batches_ends_in_the_greatest_event_of_each_key(
    spark: SparkSession, examples: int
) -> None:
    @settings_for(examples)
    @given(st.lists(BATCH, min_size=3, max_size=3), st.randoms(use_true_random=False))
    def holds(batches: list[list[Event]], chance: Random) -> None:
        greatest = greatest_events(spark, [event for batch in batches for event in batch])
        wanted = {key: (event.seq, event.amount) for key, event in greatest.items() if event.amount is not None}
        assert len(wanted) < len(greatest), "some keys end deleted"
        for order_of_batches in (batches, chance.sample([*batches, batches[0]], 4)):
            target = Target()
            for batch in order_of_batches:
                target.merge(spark, batch)
            assert target.amounts() == wanted

    holds()


@few_or_many(1, 20)
def test_the_same_events_change_nothing_and_by_a_changed_spec_every_row(spark: SparkSession, examples: int) -> None:
    @settings_for(examples)
    @given(BATCH)
    def holds(batch: list[Event]) -> None:
        target = Target()
        target.merge(spark, batch)
        before, applied = target.amounts(), target.applied
        target.merge(spark, batch)
        assert (target.amounts(), target.applied) == (before, applied)
        target.factor = 10
        target.merge(spark, batch)
        assert target.amounts() == {key: (seq, (amount or 0) * 10) for key, (seq, amount) in before.items()}

    holds()


@few_or_many(1, 20)
def test_removing_tombstones_changes_the_action_of_older_events_of_their_keys_alone(
    spark: SparkSession, examples: int
) -> None:
    actions: set[str] = set()

    @settings_for(examples)
    @given(BATCH, BATCH)
    def holds(batch: list[Event], later: list[Event]) -> None:
        target = Target()
        target.merge(spark, batch)
        latest = C.latest_per_key(with_order(spark, later), ["key"]).localCheckpoint()
        rows = {row["key"]: row for row in latest.collect()}
        older = {
            key: (C.SUPERSEDED, C.UNCHANGED if row["_is_delete"] else C.INSERT)
            for key, row in rows.items()
            if key in target.deleted.keys() - target.rows.keys()
            and (row["_sequence"]["seq"], row["_source_hash"]) < target.deleted[key][:2]
        }
        actions.update(action for _, action in older.values())
        with_tombstones, without = (
            {
                row["key"]: row["_action"]
                for row in C.with_action(latest, frame(spark, target.rows), tombstones, ["key"]).collect()
            }
            for tombstones in (frame(spark, target.deleted), frame(spark, {}))
        )
        changed = {key: (with_tombstones[key], without[key]) for key in rows if with_tombstones[key] != without[key]}
        assert changed == older

    holds()
    assert actions == {C.UNCHANGED, C.INSERT}, "some bring their key back, some do not"


def test_only_keys_with_several_events_are_repeated(spark: SparkSession) -> None:
    batch = with_order(spark, [Event("a", 1, 5), Event("b", 1, 5), Event("b", 2, None), Event("c", 1, 5)])
    assert [tuple(row) for row in C.repeated_keys(batch, ["key"]).collect()] == [("b",)]
    assert C.repeated_keys(batch, ["key", "seq"]).isEmpty()


def test_the_targets_rows_of_a_few_keys_are_each_found_once(spark: SparkSession) -> None:
    target = spark.createDataFrame([("a", 1, 10), ("a", 2, 20), ("b", 1, 30), (None, 1, 40)], "k string, n int, v int")
    events = spark.createDataFrame([("a", 1), ("a", 1), ("b", 9), (None, 1)], "k string, n int")
    found = C.rows_of_keys(target, events, ["k", "n"])
    assert found.columns == target.columns
    assert [tuple(row) for row in found.collect()] == [("a", 1, 10)]


def test_events_that_differ_in_what_the_table_does_not_store_do_not_tie(spark: SparkSession) -> None:
    twice = with_order(spark, [Event("a", 1, 5), Event("a", 1, 5)])
    other_sources = twice.withColumn("_source_hash", F.monotonically_increasing_id())
    assert [row["_tied"] for row in C.latest_per_key(other_sources, ["key"]).collect()] == [False]


def test_a_fixed_row_wins_without_a_tie(spark: SparkSession) -> None:
    delivered, fixed = with_order(spark, [Event("a", 1, 5)]), with_order(spark, [Event("a", 1, 6)])
    latest = C.latest_per_key(delivered.union(fixed.withColumn("_source_hash", F.lit(GREATEST_HASH))), ["key"])
    assert [(row["amount"], row["_tied"]) for row in latest.collect()] == [(6, False)]


def test_a_tie_is_described_by_its_key_and_sequence(spark: SparkSession) -> None:
    batch = [Event("a", 1, 5), Event("b", 1, 5), Event("b", 1, None)]
    tied = tied_keys(C.latest_per_key(with_order(spark, batch), ["key"]), ["key"])
    assert [row["description"] for row in tied.collect()] == ['key=b at {"seq":1}']


def test_a_value_that_moves_to_the_next_column_has_another_hash(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(None, 1), (1, None)], "a int, b int")
    hashes = {row["hash"] for row in rows.select(C.row_hash(["a", "b"]).alias("hash")).collect()}
    assert len(hashes) == 2


def test_a_new_column_without_a_value_leaves_the_hash_alone(spark: SparkSession) -> None:
    row = spark.createDataFrame([("x", 1, None)], "a string, b int, added int")
    old, new, other = row.select(C.row_hash(["a", "b"]), C.row_hash(["b", "added", "a"]), C.row_hash(["b"])).first()
    assert old == new != other


def test_a_row_that_is_computed_again_does_not_tie_with_what_its_event_was_before(spark: SparkSession) -> None:
    row = "'k' AS key, struct(1 AS seq) AS _sequence, {} AS _source_hash, {} AS _content_hash"
    stored = spark.sql(f"SELECT {row.format(5, 5)}")
    latest = spark.sql(f"SELECT {row.format(9, 9)}, false AS _is_delete, false AS {C.TIED}")
    actions = {}
    for recompute in (None, F.lit(True)):
        [found] = C.with_action(latest, stored, None, ["key"], recompute).collect()
        actions[recompute is not None] = found["_action"], found[C.TIED]
    assert actions == {False: (C.UPDATE, True), True: (C.UPDATE, False)}
