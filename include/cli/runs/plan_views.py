"""What `lakehouse plan` prints: a window in sum first, then each interval for which there is anything to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from include.cli.runs.answers import Answer, Kind, reached
from include.cli.runs.reports import alike
from include.cli.views import MISSING, count, new_table, size
from include.contracts.interval import Interval
from include.errors import ExitCode

MOST_SHOWN = 31
"""Of so many intervals each is shown by itself: a month of days."""


def plan_views(domain: str, answers: Sequence[Answer]) -> Iterator[RenderableType]:
    """All that is to be shown of the answers, first what counts most."""
    intervals = list(dict.fromkeys(answer.interval for answer in answers))
    if len(intervals) > 1:
        yield f"{domain}: {len(intervals)} intervals, {intervals[0].start:%Y-%m-%d} to {intervals[-1].start:%Y-%m-%d}"
        yield plan_summary(answers)
        yield from _stop(intervals, answers)
    busy = [one for one in intervals if not all(answer.is_idle for answer in answers if answer.interval == one)]
    shown = (busy if len(intervals) > 1 else intervals)[:MOST_SHOWN]
    for interval in shown:
        yield f"{domain} {interval}"
        yield plan_table(answer for answer in answers if answer.interval == interval)
    if len(busy) > len(shown):
        yield f"{len(busy) - len(shown)} more intervals have something to do: name fewer days to see them"
    yield from plan_notes(answers)


def plan_table(answers: Iterable[Answer]) -> Table:
    """What the run of one interval would do, a row a table."""
    numbers = ("last batch", "version", "certified", "files", "size")
    table = new_table("table", *numbers, "would do", numbers=numbers)
    for answer in answers:
        advice = answer.advice
        versions = (advice.batch_seq, advice.newest_version, advice.certified_version) if advice else (None, None, None)
        files = (str(len(advice.files)), size(advice.bytes)) if advice and advice.files else (MISSING, MISSING)
        message = Text(answer.message, style="red" if answer.obstacle else "")
        table.add_row(answer.table, *map(count, versions), *files, message)
    return table


def plan_summary(answers: Sequence[Answer]) -> Table:
    """What the run of several intervals would do: for each table, in how many of them what becomes of it."""
    kinds = [kind for kind in Kind if any(answer.kind is kind for answer in answers)]
    numbers = (*kinds, "files", "size")
    shown = new_table("table", *numbers, numbers=numbers)
    for table in dict.fromkeys(answer.table for answer in answers):
        of_table = [answer for answer in answers if answer.table == table]
        of_kind = Counter(answer.kind for answer in of_table)
        advices = [answer.advice for answer in of_table if answer.advice]
        files, byte_count = sum(len(one.files) for one in advices), sum(one.bytes for one in advices)
        counts = (count(of_kind[kind]) if of_kind[kind] else MISSING for kind in kinds)
        shown.add_row(table, *counts, *((count(files), size(byte_count)) if files else (MISSING, MISSING)))
    return shown


def plan_notes(answers: Iterable[Answer]) -> list[str]:
    """The planner's remarks, each once, and the ways out of what stands in the way."""
    every = list(answers)
    ways = dict.fromkeys(way for answer in every for way in answer.obstacle.split("\n")[1:])
    notes = alike((answer.table, note) for answer in every if answer.advice for note in answer.advice.notes)
    return [*(f"to do: {way}" for way in ways), *(f"note: {note}" for note in notes)]


def _stop(intervals: Sequence[Interval], answers: Sequence[Answer]) -> Iterator[str]:
    """Where the run would stop."""
    passed, code = reached(answers)
    if code is not ExitCode.OK and len(passed) < len(intervals):
        yield f"A run stops after {passed[-1]}, which does not end well: {len(intervals) - len(passed)} are not run"
