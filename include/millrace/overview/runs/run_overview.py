"""What a run did, in one sentence, and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from millrace.contracts.counted import counted
from millrace.overview.attention import Attention, Remedy, Trouble, attention_needed, failed_task_attention
from millrace.overview.runs.run import Run
from millrace.overview.runs.table_run import TROUBLE, UNFINISHED, TableOutcome, TableRun
from millrace.overview.tables.table_overview import TableOverview

_BLOCKING = (Trouble.WRONG_SPEC, Trouble.REFUSED, Trouble.APPROVAL, Trouble.GIVEN_UP)
"""The kinds of trouble that may have stopped a run; stale rows and many small files have not."""


def answer(run: Run, tables: Sequence[TableRun]) -> str:
    """Return in one sentence what a run did to its tables, or how far it is.

    >>> from millrace.overview.runs.run import RunTask, Work
    >>> task = RunTask("shop", "r1", "silver.orders", -1, "running", Work.WRITE, "silver.orders")
    >>> outcomes = (TableOutcome.RUNNING, TableOutcome.CERTIFIED, TableOutcome.CERTIFIED)
    >>> answer(Run("shop", "r1", "running", tasks=[task]), [TableRun("", [task], outcome) for outcome in outcomes])
    '3 tables: 1 running, 2 certified; 2 tables are done.'
    """
    if not run.own_tasks:
        return "This run has no task of Millrace."
    if not tables:
        return "No task of this run has named its table yet."
    counts = Counter(each.outcome for each in tables)
    parts = ", ".join(f"{counts[outcome]:,} {outcome.value}" for outcome in TableOutcome if counts[outcome])
    done = len(tables) - sum(counts[outcome] for outcome in UNFINISHED)
    progress = f"; {counted(done, 'table is', 'tables are')} done" if 0 < done < len(tables) else ""
    return f"{counted(len(tables), 'table')}: {parts}{progress}."


def next_steps(tables: Sequence[TableRun], now: datetime) -> list[Attention]:
    """Return what a person should do after a run, the worst first: only what is still to be done."""
    items = [item for each in tables for item in _steps(each, now)]
    kinds = list(Trouble)
    return sorted(items, key=lambda item: kinds.index(item.kind))


def _steps(shown: TableRun, now: datetime) -> Iterator[Attention]:
    overview = shown.overview
    if overview is None or shown.is_of_earlier_table:
        return
    if shown.outcome in TROUBLE and shown.settled_by is None:
        items = [item for item in attention_needed([replace(overview, failed=())], now) if item.kind in _BLOCKING]
        yield from items or _look_at_task(shown, overview)
    waiting = overview.waiting.rows if overview.waiting else 0
    if (quarantined := shown.rows.quarantined) and waiting:
        cause = (
            f"{counted(quarantined, 'row')} of this run went into quarantine; "
            f"{counted(waiting, 'row waits', 'rows wait')} there now"
        )
        since = overview.waiting.oldest if overview.waiting else None
        yield Attention(overview, Trouble.OLD_ROWS, cause, Remedy.REPLAY, since=since)


def _look_at_task(shown: TableRun, overview: TableOverview) -> Iterator[Attention]:
    if not shown.failed:
        return
    task = shown.failed[0]
    more = f", and {counted(len(shown.failed) - 1, 'more task')} of this table" if shown.failed[1:] else ""
    tries = f" after {counted(task.tries, 'try', 'tries')}" if task.tries > 1 else ""
    failure = f"the task {task.label} failed{tries}{more}"
    yield failed_task_attention(replace(overview, failed=(task.as_failed,)), failure)
