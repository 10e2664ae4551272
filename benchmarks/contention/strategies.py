"""The writers of each strategy, and their OPTIMIZE."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Any

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_exponential_jitter

from benchmarks.contention.counters import HIT, hit
from benchmarks.contention.heat import Heat, Keys, Strategy
from millrace.contracts.interval import Interval
from millrace.contracts.job.report import RowCounts
from millrace.control.leases.leases import Leases
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.batch import BatchSources, Intent, Stream, StreamPosition, Winner
from millrace.control.storage.objects import LocalObjectStore
from millrace.paths import LakehousePaths
from millrace_spark.delta_io.conflict_policy import conflict_of
from millrace_spark.delta_io.contest import Contest
from millrace_spark.delta_io.maintenance import optimize
from millrace_spark.layers.maintenance.maintenance import LeasedTable
from millrace_spark.layers.maintenance.yield_to_writers import in_turns
from millrace_spark.protocol.batches import BatchPlan, BatchRequest, BatchWriter, Closing
from millrace_spark.runtime.session import own_session

TABLE = "silver.counters"
GIVES_UP_S = 600
_START = datetime(2013, 1, 1, tzinfo=UTC)
DAY = Interval(start=_START, end=_START + timedelta(days=1))

Write = Callable[[], int]
"""Commit one merge; return the number of its conflicts."""


def writer(heat: Heat, paths: LakehousePaths, number: int, lock: Lock) -> Write:
    """Return the repeated work of a writer of the heat."""
    part = 0 if heat.keys is Keys.OVERLAP else number
    if heat.strategy is Strategy.MILLRACE:
        stream = f"part-{part}" if heat.keys is Keys.DISJOINT else "main"
        return lambda: _batch(paths, Stream(TABLE, stream), part, number)
    # The lock of all writers, or nothing.
    turn = lock if heat.strategy is Strategy.QUEUE else nullcontext()
    return lambda: _plain_merge(Path(paths.table(TABLE)), part, turn)


def optimizer(heat: Heat, paths: LakehousePaths) -> Callable[[], None]:
    """Return the OPTIMIZE of the strategy."""
    path = Path(paths.table(TABLE))
    if heat.strategy is Strategy.MILLRACE:
        return lambda: in_turns(
            LeasedTable(TABLE, path, _leases(paths, "optimize"), Contest(TABLE)),
            own_session,
            {},
            lambda session: optimize(session, path, ()),
            path,
        )
    return lambda: _plain_optimize(path)


@dataclass
class Merging:
    """The same merge, as a batch of the commit protocol."""

    path: Path
    part: int

    def plan(self, position: StreamPosition) -> BatchPlan:
        """Plan a batch: there is always something new."""
        return BatchPlan(BatchSources(files=1))

    def write(self, session: Any, intent: Intent, plan: BatchPlan) -> None:
        """Commit the merge."""
        hit(session, self.path, self.part)

    def close(self, winner: Winner) -> Closing:
        """Return the counts of its rows."""
        return Closing(RowCounts(read=HIT, applied=HIT, updated=HIT))


def _batch(paths: LakehousePaths, stream: Stream, part: int, number: int) -> int:
    path = Path(paths.table(TABLE))
    request = BatchRequest(path, stream, DAY, f"bench__{number}", "5bec", lambda: DAY.end)
    result = BatchWriter(request, Merging(path, part), Ledger(paths), own_session).run(_leases(paths, str(number)))
    return len(result.lost)


def _leases(paths: LakehousePaths, who: str) -> Leases:
    return Leases(LocalObjectStore(Path(paths.leases)), f"bench__{who}", patience_s=GIVES_UP_S)


def _plain_merge(path: Path, part: int, turn: AbstractContextManager[Any]) -> int:
    """Commit one merge within `turn`, again after each conflict, with growing delays."""
    retrying = Retrying(
        retry=retry_if_exception(lambda error: conflict_of(error) is not None),
        wait=wait_exponential_jitter(initial=0.1, max=5.0, jitter=0.1),
        stop=stop_after_delay(GIVES_UP_S),
        reraise=True,
    )
    with turn, own_session({}) as session:
        retrying(hit, session, path, part)
    return int(retrying.statistics["attempt_number"]) - 1


def _plain_optimize(path: Path) -> None:
    with own_session({}) as session:
        try:
            optimize(session, path, ())
        except Exception as error:  # It lost to a merge, and starts again in a second.
            if conflict_of(error) is None:
                raise
