"""What the run of a window would do: the plans, what is known of past batches, and which other tables are behind."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median

from millrace.contracts.interval import Interval
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.states.recent_batches import BatchKind
from millrace.control.planning.run_plans import PlanKind, RunPlanner, TablePlan
from millrace.errors import NotReadyError
from millrace.overview.tables.table_overview import TableOverview
from millrace.specs.invalid_spec import MaybeInvalidSpec
from millrace.specs.table_graph import TableGraph


@dataclass(frozen=True)
class LoadedRows:
    """What past batches loaded for an interval.

    Attributes:
        batches: the number of batches.
        rows: the rows that they read.
    """

    batches: int
    rows: int


@dataclass(frozen=True)
class PastBatches:
    """What is known of the past batches of a table.

    Attributes:
        seconds: the median of the seconds from the intent of a batch to its close; None without a past batch.
        count: the number of batches of which it is the median.
        loaded: start of an interval -> what batches loaded for it.
    """

    seconds: float | None = None
    count: int = 0
    loaded: Mapping[datetime, LoadedRows] = field(default_factory=dict)


@dataclass(frozen=True)
class PlannedWork:
    """The work of one table in a window.

    Attributes:
        table: the table.
        kinds: what the plans are -> the number of intervals.
        batches: the number of intervals in which it would be written.
        files: the landing files to load.
        bytes: their size.
        past: its past batches.
    """

    table: str
    kinds: Mapping[PlanKind, int]
    batches: int
    files: int
    bytes: int
    past: PastBatches

    @property
    def seconds(self) -> float | None:
        """The estimated seconds of its batches; None without a past batch."""
        return None if self.past.seconds is None else self.past.seconds * self.batches


@dataclass(frozen=True)
class WindowPlan:
    """The plan of a window.

    Attributes:
        plans: the plan of each interval and table, as `lakehouse plan` makes it.
        unplanned: the intervals that were not planned, because the time was over.
        past: table -> its past batches.
    """

    plans: Sequence[TablePlan]
    unplanned: Sequence[Interval] = ()
    past: Mapping[str, PastBatches] = field(default_factory=dict)

    @property
    def intervals(self) -> dict[Interval, list[TablePlan]]:
        """Interval -> the plans of its tables, in build order."""
        of_interval: dict[Interval, list[TablePlan]] = {}
        for plan in self.plans:
            of_interval.setdefault(plan.interval, []).append(plan)
        return of_interval

    @property
    def changed(self) -> list[str]:
        """The tables that would bring readers something new."""
        return list(dict.fromkeys(plan.table for plan in self.plans if plan.has_new_data))

    @property
    def tables(self) -> list[PlannedWork]:
        """The work of each table, in build order."""
        of_table: dict[str, list[TablePlan]] = {}
        for plan in self.plans:
            of_table.setdefault(plan.table, []).append(plan)
        return [_work(table, plans, self.past.get(table, PastBatches())) for table, plans in of_table.items()]

    @property
    def partial(self) -> list[str]:
        """The tables with a landing folder that has more files than were compared."""
        return list(dict.fromkeys(plan.table for plan in self.plans if plan.is_partial))

    @property
    def seconds(self) -> float:
        """The estimated seconds of all batches one after the other, of the tables that have a past batch."""
        return sum(work.seconds or 0.0 for work in self.tables)

    @property
    def unknown(self) -> list[str]:
        """The tables that would be written, and have no past batch to estimate from."""
        return [work.table for work in self.tables if work.batches and work.seconds is None]


def plan_window(
    planner: RunPlanner,
    specs: Sequence[MaybeInvalidSpec],
    intervals: Sequence[Interval],
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> WindowPlan:
    """Plan intervals until a time is over; only whole intervals count.

    Args:
        planner: plans the run.
        specs: the tables, in build order.
        intervals: the intervals, in order of time.
        seconds: how long the plan may take. When a single listing of a landing folder ends, the planner decides.
        clock: returns the time in seconds.

    Raises:
        NotReadyError: not even the first interval was planned in time.
    """
    until = clock() + seconds
    plans: list[TablePlan] = []
    for number, interval in enumerate(intervals):
        try:
            plans += planner.interval(_in_time(specs, until, clock), interval)
        except _TimeIsOverError:
            if not plans:
                raise NotReadyError(
                    f"{interval.label} was not planned in {seconds:.0f} seconds",
                    "Choose fewer tables, or plan it by `lakehouse plan`, which has no limit.",
                ) from None
            return WindowPlan(plans, intervals[number:])
    return WindowPlan(plans)


class _TimeIsOverError(Exception):
    """The time for a plan is over."""


def _in_time(specs: Iterable[MaybeInvalidSpec], until: float, clock: Callable[[], float]) -> Iterator[MaybeInvalidSpec]:
    for spec in specs:
        if clock() > until:
            raise _TimeIsOverError
        yield spec


def past_batches(ledger: Ledger, table: TableOverview, starts: Collection[datetime]) -> PastBatches:
    """Return what is known of the past batches of a table, for the intervals with these starts.

    Restores, rebuilds and replays say nothing about the time of a load.
    """
    if not table.table_id:
        return PastBatches()
    loads = [batch for batch in table.batches if batch.kind is BatchKind.LOAD]
    seconds = ledger.history.seconds(table.table, loads)
    batches, rows = Counter[datetime](), Counter[datetime]()
    for batch in ledger.history.of_intervals(table.table, table.table_id, starts):
        if batch.kind is BatchKind.LOAD:
            batches[batch.interval_start] += 1
            rows[batch.interval_start] += batch.rows.read
    loaded = {start: LoadedRows(count, rows[start]) for start, count in batches.items()}
    return PastBatches(median(seconds) if seconds else None, len(seconds), loaded)


@dataclass(frozen=True)
class TableBehind:
    """A table that is not planned, and reads a table that would change.

    Attributes:
        table: the table.
        sources: the tables through which the change reaches it.
    """

    table: TableOverview
    sources: tuple[str, ...]


def tables_behind(
    changed: Collection[str], planned: Collection[str], tables: Mapping[str, TableOverview]
) -> list[TableBehind]:
    """Return the tables that would be behind, directly or through others, the nearest first.

    Args:
        changed: the tables that would have something new.
        planned: the tables of the plan.
        tables: every table.
    """
    others = {name: table for name, table in tables.items() if name not in planned}
    reached = TableGraph.of(table.spec for table in others.values()).downstream(*changed)
    behind = sorted((name for name in others if reached.get(name)), key=reached.__getitem__)
    return [
        TableBehind(tables[name], tuple(s for s in tables[name].spec.upstream_tables if s in reached))
        for name in behind
    ]


def _work(table: str, plans: Sequence[TablePlan], past: PastBatches) -> PlannedWork:
    advices = [plan.advice for plan in plans if plan.advice]
    return PlannedWork(
        table,
        Counter(plan.kind for plan in plans),
        sum(plan.has_new_data for plan in plans),
        sum(len(advice.files) for advice in advices),
        sum(advice.bytes for advice in advices),
        past,
    )
