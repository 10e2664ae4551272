"""Change data against a dict model: any order, repetition, ties and deletes end in the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.transforms import changes as C

COLUMNS = "key string, seq int, amount int, _is_delete boolean"
STATE = "key string, _sequence struct<seq:int>, _content_hash bigint, amount int"


@dataclass(frozen=True)
class Event:
    """One event of a key: an upsert of an amount, or a delete."""

    key: str
    seq: int
    amount: int | None


@dataclass
class Target:
    """A target table and its tombstones, key -> (seq, hash, amount)."""

    rows: dict[str, tuple[int, int, int | None]] = field(default_factory=dict)
    deleted: dict[str, tuple[int, int, int | None]] = field(default_factory=dict)
    applied: int = 0

    def merge(self, spark: SparkSession, batch: Sequence[Event]) -> None:
        latest = C.latest_per_key(with_order(spark, batch), ["key"])
        classified = C.with_fate(latest, frame(spark, self.rows), frame(spark, self.deleted), ["key"])
        for row in classified.collect():
            state = (row["_sequence"]["seq"], row["_content_hash"], row["amount"])
            self._apply(row["key"], row["_fate"], state, is_delete=row["_is_delete"])

    def _apply(self, key: str, fate: str, state: tuple[int, int, int | None], *, is_delete: bool) -> None:
        if fate in (C.INSERT, C.UPDATE):
            self.rows[key] = state
        elif fate == C.DELETE:
            del self.rows[key]
        if is_delete:
            self.deleted[key] = max(state, self.deleted.get(key, state), key=lambda known: known[:2])
        self.applied += fate in C.CHANGES


def with_order(spark: SparkSession, batch: Sequence[Event]) -> DataFrame:
    rows = [(event.key, event.seq, event.amount, event.amount is None) for event in batch]
    events = spark.createDataFrame(rows, COLUMNS).withColumn("_sequence", F.struct("seq"))
    return events.withColumn("_content_hash", C.content_hash(["key", "amount"], F.col("_is_delete")))


def frame(spark: SparkSession, state: dict[str, tuple[int, int, int | None]]) -> DataFrame:
    return spark.createDataFrame([(key, (seq,), tie, amount) for key, (seq, tie, amount) in state.items()], STATE)


EVENTS = st.builds(Event, st.sampled_from("abc"), st.integers(1, 4), st.one_of(st.none(), st.integers(0, 3)))


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(EVENTS, min_size=1, max_size=5), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_any_order_and_repetition_of_batches_ends_in_the_greatest_event_of_each_key(
    spark: SparkSession, batches: list[list[Event]], chance: object
) -> None:
    everything = [event for batch in batches for event in batch]
    hashes = {row["key"] + str(row["seq"]) + str(row["amount"]): row["_content_hash"]
              for row in with_order(spark, everything).collect()}  # fmt: skip
    greatest: dict[str, Event] = {}
    for event in everything:
        rank = (event.seq, hashes[event.key + str(event.seq) + str(event.amount)])
        known = greatest.get(event.key)
        if known is None or rank > (known.seq, hashes[known.key + str(known.seq) + str(known.amount)]):
            greatest[event.key] = event
    wanted = {key: (event.seq, event.amount) for key, event in greatest.items() if event.amount is not None}
    shuffled = [*batches, batches[0]]
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    for order_of_batches in (batches, shuffled):
        target = Target()
        for batch in order_of_batches:
            target.merge(spark, batch)
        assert {key: (seq, amount) for key, (seq, _, amount) in target.rows.items()} == wanted


def test_merging_the_same_batch_again_changes_nothing(spark: SparkSession) -> None:
    batch = [Event("a", 1, 5), Event("a", 2, 6), Event("b", 1, None), Event("c", 1, 0)]
    target = Target()
    target.merge(spark, batch)
    assert (target.applied, set(target.rows)) == (2, {"a", "c"})
    target.merge(spark, batch)
    assert target.applied == 2


def test_a_value_that_moves_to_the_next_column_has_another_hash(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(None, 1), (1, None)], "a int, b int")
    hashes = {row["hash"] for row in rows.select(C.content_hash(["a", "b"], F.lit(False)).alias("hash")).collect()}
    assert len(hashes) == 2
