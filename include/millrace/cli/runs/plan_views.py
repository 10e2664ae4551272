"""The output of `lakehouse plan`: first a summary of the intervals, then each interval with work to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from millrace.cli.runs.reports import merge_notes
from millrace.cli.runs.table_plans import reached_intervals
from millrace.cli.views import MISSING, count, new_table, size
from millrace.contracts.counted import counted
from millrace.control.planning.run_plans import PlanKind, TablePlan
from millrace.errors import ExitCode

MAX_SHOWN = 31
"""The most intervals that are shown one by one: a month of days."""


def plan_views(domain: str, plans: Sequence[TablePlan]) -> Iterator[RenderableType]:
    """Yield all parts of the output, the most important first."""
    intervals = list(dict.fromkeys(plan.interval for plan in plans))
    if len(intervals) > 1:
        yield f"{domain}: {len(intervals)} intervals, {intervals[0].start:%Y-%m-%d} to {intervals[-1].start:%Y-%m-%d}"
        yield plan_summary(plans)
        reached, code = reached_intervals(plans)
        if code is not ExitCode.OK and len(reached) < len(intervals):
            not_run = counted(len(intervals) - len(reached), "interval is", "intervals are")
            yield f"A run stops after {reached[-1].label}, which fails: {not_run} not run"
    busy = [interval for interval in intervals if not all(plan.is_idle for plan in plans if plan.interval == interval)]
    shown = (busy if len(intervals) > 1 else intervals)[:MAX_SHOWN]
    for interval in shown:
        yield f"{domain}, {interval.label}"
        yield plan_table(plan for plan in plans if plan.interval == interval)
    if len(busy) > len(shown):
        more = counted(len(busy) - len(shown), "more interval has", "more intervals have")
        yield f"{more} work to do: name fewer days to see them"
    notes = merge_notes((plan.table, note) for plan in plans if plan.advice for note in plan.advice.notes)
    yield from (*_to_do(plans), *(f"note: {note}" for note in notes))


def _to_do(plans: Iterable[TablePlan]) -> Iterator[str]:
    """Yield what helps, once for all tables that it helps; a table that waits for another one repeats nothing."""
    tables: dict[str, dict[str, None]] = {}
    for plan in plans:
        if ways := plan.obstacle.partition("\n")[2]:
            tables.setdefault(ways, {})[plan.table] = None
    for ways, of_ways in tables.items():
        yield f"to do for {', '.join(of_ways)}: {ways.lstrip().replace(chr(10), chr(10) + '  ')}"


def plan_facts(plan: TablePlan) -> dict[str, object]:
    """Return the plan of one table and interval for other programs; `kind` is the plan in one word."""
    return {**vars(plan), "kind": plan.kind, "message": plan.message, "has_new_data": plan.has_new_data}


def plan_table(plans: Iterable[TablePlan]) -> Table:
    """Return what the run of one interval would do, one row per table."""
    numbers = ("last batch", "version", "certified", "files", "size")
    table = new_table("table", *numbers, "would do", numbers=numbers)
    for plan in plans:
        advice = plan.advice
        versions = (advice.batch_seq, advice.newest_version, advice.certified_version) if advice else (None, None, None)
        files = (str(len(advice.files)), size(advice.bytes)) if advice and advice.files else (MISSING, MISSING)
        message = Text(plan.message, style="red" if plan.obstacle else "")
        table.add_row(plan.table, *map(count, versions), *files, message)
    return table


def plan_summary(plans: Sequence[TablePlan]) -> Table:
    """Return what the run of several intervals would do: per table, the number of intervals of each kind."""
    kinds = [kind for kind in PlanKind if any(plan.kind is kind for plan in plans)]
    numbers = (*kinds, "files", "size")
    shown = new_table("table", *numbers, numbers=numbers)
    for table in dict.fromkeys(plan.table for plan in plans):
        table_plans = [plan for plan in plans if plan.table == table]
        of_kind = Counter(plan.kind for plan in table_plans)
        advices = [plan.advice for plan in table_plans if plan.advice]
        files, byte_count = sum(len(advice.files) for advice in advices), sum(advice.bytes for advice in advices)
        counts = (count(of_kind[kind]) if of_kind[kind] else MISSING for kind in kinds)
        shown.add_row(table, *counts, *((count(files), size(byte_count)) if files else (MISSING, MISSING)))
    return shown
