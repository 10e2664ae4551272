"""What a run did to one table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from functools import cached_property

from millrace.contracts.job.findings import RefusedRows, merge_by_field, merge_by_reason, rescued_texts
from millrace.contracts.job.report import RowCounts, total
from millrace.contracts.job.requests import FormAction
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.contracts.spec.values import layer_order
from millrace.control.events.conditions import Span
from millrace.control.gates.result import GateResult
from millrace.control.landing.landing import interval_folder
from millrace.control.ledger.commit_history import TableWrite
from millrace.control.ledger.states.recent_batches import MOST_BATCHES, BatchKind, RecentBatch
from millrace.control.ops_tables import OpsTables
from millrace.errors import Outcome
from millrace.overview.failures import failure_cause
from millrace.overview.runs.run import ASKING, BLOCKED, FAILED, SKIPPED, Run, RunTask, Work
from millrace.overview.tables.overview_from_state import is_over
from millrace.overview.tables.table_overview import TableOverview
from millrace.overview.timeline import result_in_force
from millrace.specs.table_graph import TableGraph

_LATER = timedelta(days=1)
"""For how long after a run other processes may close a batch that its dead driver has committed."""

_CLOCKS_DIFFER = timedelta(minutes=10)

_WAITS = {
    "scheduled": "waits for a slot",
    "queued": "waits for a worker",
    "up_for_retry": "is tried again",
    "deferred": "waits without a slot",
    ASKING: "waits for an answer",
}
"""The state of a task in Airflow's words -> what it does."""


class TableOutcome(StrEnum):
    """How a run has ended for a table, or how far it is; the worst first."""

    REFUSED = "refused"
    FAILED = "failed"
    BLOCKED = "did not run"
    WAITS = "waits"
    RUNNING = "running"
    TO_COME = "not started"
    UNCHECKED = "not checked"
    CERTIFIED_BY_HAND = "certified by hand"
    CERTIFIED = "certified"
    REPORTED = "dry run"
    MAINTAINED = "maintained"
    DECIDED = "decided"
    NOTHING_NEW = "nothing new"
    SKIPPED = "skipped"


TROUBLE = (TableOutcome.REFUSED, TableOutcome.FAILED)
"""The outcomes after which a person must act; what did not run follows from one of them."""

UNFINISHED = (TableOutcome.WAITS, TableOutcome.RUNNING, TableOutcome.TO_COME)
"""The outcomes of a table with which the run is not done."""


@dataclass(frozen=True)
class TableRun:
    """What a run did to one table.

    Attributes:
        table: the table.
        tasks: its tasks in the run.
        outcome: how they have ended.
        overview: the table as it is now; None if the lakehouse cannot be read, or has no spec of it.
        batches: the batches that the run wrote, oldest first.
        result: the gate's result for the version that the run has checked; None without one.
        writes: the waits and lost races of its writers, and its maintenance, oldest first.
        stopped_by: the tables because of which it did not run, without those in between; empty if it ran, or if the
            lakehouse cannot be read.
        landing_folder: the folder of its landing files of this run, below that of all landing files; empty if it loads
            none, or if the interval of the run or the lakehouse is not known.
    """

    table: str
    tasks: Sequence[RunTask]
    outcome: TableOutcome
    overview: TableOverview | None = None
    batches: Sequence[RecentBatch] = ()
    result: GateResult | None = None
    writes: Sequence[TableWrite] = ()
    stopped_by: Sequence[TableRun] = ()
    landing_folder: str = ""

    @property
    def layer(self) -> str:
        """The layer of the table."""
        return self.table.partition(".")[0]

    @cached_property
    def rows(self) -> RowCounts:
        """The counts of the rows that the run has read for the table; those of a restore do not count again."""
        loads = [batch.rows for batch in self.batches if batch.kind is not BatchKind.RESTORE]
        if not loads:
            names = RowCounts.model_fields.keys()
            loads = [
                RowCounts(**{name: count for name, count in task.result.rows.items() if name in names})
                for task in self.tasks
                if task.result
            ]
        return total(loads)

    @property
    def refused(self) -> tuple[RefusedRows, ...]:
        """The refused rows by reason, the most frequent first; empty if the tasks have not left the reasons."""
        return merge_by_reason(rows for task in self.tasks if task.result for rows in task.result.refused)

    @property
    def rescued(self) -> list[str]:
        """What is said about the values that fit no column, without the values; empty if the tasks have not left it."""
        fields = merge_by_field(values for task in self.tasks if task.result for values in task.result.rescued)
        return list(rescued_texts(fields))

    @property
    def version(self) -> int | None:
        """The version that the run has written, or that its gate has checked; None without one."""
        checked = [task.checked for task in self.tasks if task.checked is not None]
        results = [task.result.version for task in self.tasks if task.result and task.result.version is not None]
        loads = [batch.version for batch in self.batches if batch.kind is not BatchKind.RESTORE]
        versions = checked or loads or results
        return versions[-1] if versions else None

    @property
    def is_of_earlier_table(self) -> bool:
        """Whether its tasks have ended before the present table of this name was created."""
        created = self.overview.created if self.overview else None
        return created is not None and all(task.ended is not None and task.ended < created for task in self.tasks)

    @property
    def settled_by(self) -> int | None:
        """The version that readers use now, if nothing is to be done about a refusal or failure any more; else None."""
        overview = self.overview
        if overview is None or overview.certified is None or self.is_of_earlier_table:
            return None
        if self.outcome is TableOutcome.REFUSED:
            is_settled = self.version is not None and overview.certified >= self.version
        else:
            failed = [task.as_failed for task in self.failed]
            is_settled = self.outcome is TableOutcome.FAILED and all(is_over(task, overview) for task in failed)
        return overview.certified if is_settled else None

    @property
    def failed(self) -> list[RunTask]:
        """Its tasks that have failed."""
        return [task for task in self.tasks if task.state == FAILED]

    @property
    def progress(self) -> str:
        """What it waits for, which task of it works, or why it did not run; empty if it is done."""
        if self.stopped_by:
            return f"because of {', '.join(f'{each.table} ({each.outcome.value})' for each in self.stopped_by)}"
        task = next((task for task in self.tasks if task.state and not task.has_ended), None)
        if task is None or self.outcome not in UNFINISHED:
            return ""
        if task.is_running:
            return f"{task.label} works"
        if task.work is Work.FILES:
            return f"waits for its landing files{f' in {self.landing_folder}' if self.landing_folder else ''}"
        why = failure_cause(task.result) if task.result else ""
        return f"{task.label} {_WAITS.get(task.state, 'waits')}{': ' if why else ''}{why}"

    @property
    def messages(self) -> list[str]:
        """What its jobs said at their end, in one line each; it may have values of rows."""
        results = [task.result for task in self.tasks if task.result and task.work is not Work.GATE]
        return list(dict.fromkeys(result.message.partition("\n")[0] for result in results if result.message))


def table_runs(run: Run, overviews: dict[str, TableOverview]) -> list[TableRun]:
    """Return what a run did to each of its tables, as tasks and states of tables say it.

    The worst outcome comes first; tables of the same outcome are in the order of layers and names.
    """
    tasks: dict[str, list[RunTask]] = {}
    works = [*Work, None]
    for task in sorted(run.own_tasks, key=lambda task: (works.index(task.work), _start_key(task), task.task_id)):
        if task.table:
            tasks.setdefault(task.table, []).append(task)
    if any(task.work is Work.REBUILD for task in run.own_tasks):
        # The tables downstream are rebuilt by the same task. The id of such a run has the time to the microsecond.
        for table, overview in overviews.items():
            if any(batch.run_id == run.run_id and batch.kind is BatchKind.REBUILD for batch in overview.batches):
                tasks.setdefault(table, [task for task in run.own_tasks if task.work is Work.REBUILD])
    tables = [_table_run(run, table, of_table, overviews.get(table)) for table, of_table in tasks.items()]
    order = list(TableOutcome)
    tables = _with_stops({each.table: each for each in tables})
    return sorted(tables, key=lambda each: (order.index(each.outcome), layer_order(each.layer), each.table))


def _start_key(task: RunTask) -> float:
    return task.started.timestamp() if task.started else math.inf


def _with_stops(tables: Mapping[str, TableRun]) -> list[TableRun]:
    """Return the tables; those that did not run also get the tables that stopped them."""
    graph = TableGraph.of(each.overview.spec for each in tables.values() if each.overview)
    stops = {name: each for name, each in tables.items() if each.outcome in TROUBLE}
    return [
        replace(each, stopped_by=[stops[source] for source in graph.upstream(name) if source in stops])
        if each.outcome is TableOutcome.BLOCKED
        else each
        for name, each in tables.items()
    ]


def with_history(shown: TableRun, run: Run, ops: OpsTables) -> TableRun:
    """Return the same with what only the ledger knows: older batches, gate results, waits and lost races."""
    overview = shown.overview
    if overview is None or not overview.table_id or run.created is None:
        return shown
    table, until = shown.table, run.ended + _LATER if run.ended else None
    recorded = Span(run.created - _CLOCKS_DIFFER, until)
    if not _has_all(overview, run):
        shown = replace(shown, batches=ops.ledger.history.of_run(table, overview.table_id, run.run_id, recorded))
    shown = replace(shown, writes=ops.commits.of_run(table, run.run_id, recorded))
    result, outcome = _result(shown, overview, ops), shown.outcome
    if outcome is TableOutcome.CERTIFIED and result and result.override:
        outcome = TableOutcome.CERTIFIED_BY_HAND
    return replace(shown, result=result, outcome=outcome)


def _table_run(run: Run, table: str, tasks: Sequence[RunTask], overview: TableOverview | None) -> TableRun:
    batches = [batch for batch in overview.batches if batch.run_id == run.run_id] if overview else []
    folder = _landing_folder(run, overview)
    return TableRun(table, tasks, _outcome(run, tasks, batches), overview, batches, landing_folder=folder)


def _landing_folder(run: Run, overview: TableOverview | None) -> str:
    spec = overview.spec if overview else None
    if run.interval is None or not isinstance(spec, BronzeSpec) or spec.reads_kafka:
        return ""
    return interval_folder(spec.landing_source, run.interval)


def _has_all(overview: TableOverview, run: Run) -> bool:
    """Whether the state of a table has all batches of the run."""
    batches = overview.batches
    is_older = bool(batches) and run.created is not None and batches[0].at < run.created - _CLOCKS_DIFFER
    return is_older or 0 < len(batches) < MOST_BATCHES


def _result(shown: TableRun, overview: TableOverview, ops: OpsTables) -> GateResult | None:
    """Return the gate's result for the version of the run, if the run has checked one."""
    has_checked = any(task.work is Work.GATE and task.has_ended for task in shown.tasks)
    version = shown.version
    if version is None or shown.is_of_earlier_table or not (has_checked or shown.batches):
        return None
    verdicts = overview.verdicts
    if verdicts and verdicts.upto == version:
        return result_in_force(verdicts.judged)
    results = ops.gates.results_between(shown.table, overview.table_id, version, version)
    return result_in_force([recorded.result for recorded in results])


def _outcome(run: Run, tasks: Sequence[RunTask], batches: Sequence[RecentBatch]) -> TableOutcome:
    if unfinished_or_failed := _trouble(tasks):
        return unfinished_or_failed
    worked = [task for task in tasks if task.state != SKIPPED]
    if not worked:
        return TableOutcome.SKIPPED
    if run.is_dry_run:
        return TableOutcome.REPORTED
    if any(task.work is Work.MAINTENANCE for task in worked):
        return TableOutcome.MAINTAINED
    is_decision = run.form.get("action", FormAction.REPLAY) != FormAction.REPLAY
    if all(task.work is Work.APPROVAL or (task.work is Work.REPLAY and is_decision) for task in worked):
        return TableOutcome.DECIDED
    results = [task.result for task in worked if task.result and task.work is not Work.GATE]
    if not batches and not any(result.outcome is Outcome.COMMITTED for result in results):
        return TableOutcome.NOTHING_NEW
    is_checked = any(task.work is Work.GATE for task in worked)
    has_certified = any(result.version is not None and result.version == result.certified_version for result in results)
    return TableOutcome.CERTIFIED if is_checked or has_certified else TableOutcome.UNCHECKED


def _trouble(tasks: Sequence[RunTask]) -> TableOutcome | None:
    """Return the outcome of tasks that have failed, or are not done; None if all have ended well."""
    failed = [task for task in tasks if task.state == FAILED]
    if any(task.work is Work.GATE and task.checked is not None for task in failed):
        return TableOutcome.REFUSED
    if failed:
        return TableOutcome.FAILED
    if any(task.state == BLOCKED for task in tasks):
        return TableOutcome.BLOCKED
    if any(task.is_running for task in tasks):
        return TableOutcome.RUNNING
    waiting = [task for task in tasks if not task.has_ended]
    if any(task.state for task in waiting):
        return TableOutcome.WAITS
    return TableOutcome.TO_COME if waiting else None
