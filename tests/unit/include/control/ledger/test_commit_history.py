"""The history of writes: it returns what was recorded, and selects the contended writes."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from include.contracts.job.contention import LeaseWait, LostRace
from include.control.ledger.commit_history import CommitHistory, TableWrite, contended_writes
from include.paths import LakehousePaths
from tests.support.ledger.delta_tables import FIRST_DAY

WORDS = st.text(max_size=5)
RACES = st.builds(LostRace, conflict=WORDS, operation=WORDS, run_id=WORDS, version=st.none() | st.integers(0, 9))
WRITTEN = st.builds(
    TableWrite,
    table=st.just("silver.orders"),
    operation=WORDS,
    stream=WORDS,
    run_id=WORDS,
    batch_seq=st.none() | st.integers(1, 9),
    token=WORDS,
    version=st.none() | st.integers(0, 9),
    attempts=st.integers(1, 9),
    took_s=st.floats(0, 99),
    waited=st.builds(LeaseWait, seconds=st.floats(0, 99), holders=WORDS),
    lost=st.lists(RACES, max_size=3).map(tuple),
    at=st.just(FIRST_DAY),
)


def test_the_history_is_empty_before_the_first_batch(tmp_path: Path) -> None:
    assert CommitHistory(LakehousePaths(tmp_path)).of("silver.orders") == []


@settings(max_examples=20)
@given(written=WRITTEN)
def test_the_history_of_a_table_has_its_writes_and_no_others(tmp_path_factory: object, written: TableWrite) -> None:
    folder = tmp_path_factory.mktemp("ops")  # type: ignore[attr-defined]
    history = CommitHistory(LakehousePaths(folder))
    history.record(written)
    assert CommitHistory(LakehousePaths(folder)).of("silver.orders") == [written]
    assert history.of("silver.others") == []


def test_only_writes_that_waited_or_lost_a_race_are_contended() -> None:
    alone = TableWrite("silver.orders", "scheduled__1", FIRST_DAY, attempts=1, waited=LeaseWait(seconds=0.2))
    loser = TableWrite(
        "silver.orders", "scheduled__2", FIRST_DAY, lost=(LostRace(conflict="ConcurrentAppendException"),)
    )
    waiter = TableWrite("silver.orders", "scheduled__3", FIRST_DAY, waited=LeaseWait(seconds=1.0, holders="manual__1"))
    assert contended_writes([alone, loser, waiter]) == [loser, waiter]
