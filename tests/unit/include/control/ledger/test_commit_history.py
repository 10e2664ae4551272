"""The history of writes: it returns what was recorded, and selects the contended writes."""

from __future__ import annotations

from pathlib import Path

from include.contracts.job.contention import LeaseWait, LostRace
from include.control.ledger.commit_history import CommitHistory, TableWrite, contended_writes
from include.paths import LakehousePaths
from tests.support.ledger.delta_tables import day

ALONE = TableWrite("silver.orders", "scheduled__1", day(1).start, attempts=1, waited=LeaseWait(seconds=0.99))
LOSER = TableWrite(
    "silver.orders",
    "scheduled__2",
    day(2).start,
    operation="MERGE",
    stream="main",
    batch_seq=2,
    token="t2",
    version=5,
    attempts=3,
    took_s=1.5,
    lost=(
        LostRace(conflict="ConcurrentAppendException", operation="OPTIMIZE", run_id="manual__1", version=4),
        LostRace(conflict="ConcurrentWriteException", operation="", run_id="", version=None),
    ),
)
WAITER = TableWrite("silver.orders", "scheduled__3", day(3).start, waited=LeaseWait(seconds=1.0, holders="manual__1"))


def test_the_history_of_a_table_has_its_writes_and_no_others(tmp_path: Path) -> None:
    history = CommitHistory(LakehousePaths(tmp_path))
    assert history.of("silver.orders") == []
    for write in (ALONE, LOSER, WAITER):
        history.record(write)
    assert CommitHistory(LakehousePaths(tmp_path)).of("silver.orders") == [ALONE, LOSER, WAITER]
    assert history.of("silver.others") == []


def test_only_writes_that_waited_or_lost_a_race_are_contended() -> None:
    assert contended_writes([ALONE, LOSER, WAITER]) == [LOSER, WAITER]
