"""Where the time of the tasks of a run went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum

from millrace.contracts.job.spans import BATCH, GATE, PLAN, TOTAL, VERDICT, WAITED
from millrace.overview.runs.run import RunTask, Work


class Phase(StrEnum):
    """A part of the time of a task, in the order in which they come."""

    FILES = "waiting for files"
    SLOT = "waiting for a slot"
    EARLIER = "earlier tries"
    PLAN = "planning"
    WRITERS = "waiting for other writers"
    SPARK = "Spark"
    GATE = "gate"
    OTHER = "start and end"
    SO_FAR = "works so far"


TimeSplit = Mapping[Phase, float]
"""Phase -> seconds; a phase without any is missing."""


def time_split(tasks: Iterable[RunTask], now: datetime) -> dict[Phase, float]:
    """Return the seconds of each phase of some tasks together.

    A task waits for a slot from when all that it depends on is done until a worker starts it: for the pool, for another
    run of the same task, for the worker. What the report of its job does not explain, such as the start of processes,
    is `OTHER`; a task without a report has nothing else. A task that still works has left no report yet.
    """
    seconds = dict.fromkeys(Phase, 0.0)
    for task in tasks:
        for phase, of_task in _of_task(task, now).items():
            seconds[phase] += max(of_task, 0.0)
    return {phase: of_phase for phase, of_phase in seconds.items() if of_phase >= 0.05}


def add_up(splits: Iterable[TimeSplit]) -> dict[Phase, float]:
    """Return the seconds of each phase of several tables together."""
    seconds: dict[Phase, float] = {}
    for split in splits:
        for phase, of_phase in split.items():
            seconds[phase] = seconds.get(phase, 0.0) + of_phase
    return {phase: seconds[phase] for phase in Phase if phase in seconds}


def _of_task(task: RunTask, now: datetime) -> dict[Phase, float]:
    waits = {Phase.SLOT: _slot_s(task, now), Phase.EARLIER: task.earlier_s}
    whole = _whole_s(task, now)
    if task.work is Work.FILES:
        # It gives its slot back while it waits.
        return {**waits, Phase.SLOT: 0.0, Phase.FILES: whole}
    if task.work is Work.APPROVAL:
        return {}
    if task.is_running:
        return {**waits, Phase.SO_FAR: whole}
    spans = task.result.seconds if task.result else {}
    lease, check = spans.get(WAITED, 0.0), spans.get(GATE, 0.0)
    parts = {
        Phase.PLAN: spans.get(PLAN, 0.0),
        Phase.WRITERS: lease,
        Phase.SPARK: max(spans.get(BATCH, spans.get(TOTAL, 0.0) - check) - lease, 0.0),
        Phase.GATE: check + spans.get(VERDICT, 0.0),
    }
    if task.work is Work.GATE and not spans:
        parts[Phase.GATE] = whole
    return {**waits, **parts, Phase.OTHER: whole - sum(parts.values())}


def _whole_s(task: RunTask, now: datetime) -> float:
    end = task.ended or (now if task.is_running or task.work is Work.FILES else None)
    return (end - task.started).total_seconds() if task.started and end else 0.0


def _slot_s(task: RunTask, now: datetime) -> float:
    end = task.started or (None if task.has_ended else now)
    return (end - task.asked_at).total_seconds() if task.asked_at and end else 0.0
