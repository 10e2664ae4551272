"""What needs a person: the cause, and the one action that helps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from millrace.contracts.counted import counted
from millrace.contracts.spec.duration import RETENTION
from millrace.contracts.spec.table_spec import GoldSpec
from millrace.contracts.time_format import MINUTE
from millrace.control.changes.spec_changes import Effect
from millrace.control.changes.table_diff import changes_since
from millrace.control.gates.result import GateResult
from millrace.control.log.batch import Winner
from millrace.control.maintenance.health import AFTER_LOST_HOLD, LOST_HOLD
from millrace.control.ops_tables import OpsTables
from millrace.overview.failures import failure_cause, failure_message, failure_way_out
from millrace.overview.observations import failure_without_values
from millrace.overview.tables.table_overview import Condition, TableOverview
from millrace.specs.invalid_spec import InvalidSpec


class Trouble(StrEnum):
    """The kind of trouble, the worst first."""

    INTERRUPTED = "repair interrupted"
    WRONG_SPEC = Condition.WRONG_SPEC.value
    REFUSED = Condition.REFUSED.value
    FAILED = Condition.FAILED.value
    MISFIT = "does not fit"
    APPROVAL = Condition.APPROVAL.value
    STALE = Condition.STALE.value
    GIVEN_UP = "file given up"
    OLD_ROWS = "quarantine"
    HEALTH = "health"


class Remedy(StrEnum):
    """The action that helps."""

    FIX_SPEC = "fix the spec"
    OVERRIDE = "let this version pass"
    ALLOW_DELETES = "allow the deletes"
    DECIDE_COLUMNS = "decide about the columns"
    REBUILD = "rebuild the table"
    LOOK = "look at the task"
    RUN = "look at the runs"
    REPLAY = "work the quarantine"
    DELIVER = "have the files delivered again"
    MAINTAIN = "look at the maintenance"
    STORAGE = "look at the storage"
    REPAIR = "look at the repairs"


_KINDS = list(Trouble)
_AFTER_MISFIT = "No run writes it any more: put the spec back, or rebuild the table."
_AFTER_REFUSAL = (
    "Fix the rule, then clear the task of its gate; or have the data corrected in a new file, and run its interval."
)
_AFTER_LOSS = "If the source lost them, have it deliver them again under another name, then run the interval again."
_AFTER_RESTORE = "Fix the data or the rule, then clear the task that writes the table, with the tasks after it."


@dataclass(frozen=True)
class Attention:
    """Something that needs a person.

    Attributes:
        table: the table.
        kind: the kind of trouble.
        cause: what is wrong, in one sentence, without values of rows.
        action: the action that helps.
        way_out: what else helps; empty for nothing.
        since: since when it waits; None if it is not known.
        fields: the values of the form that carries the action out.
        message: what the failed task has said, line by line; it may have values of rows.
        subjects: what tells this cause from others of its kind about the same table, such as the refused version. It
            stays the same as long as the cause is the same, while `cause` may change.
    """

    table: TableOverview
    kind: Trouble
    cause: str
    action: Remedy
    way_out: str = ""
    since: datetime | None = None
    fields: dict[str, str | int] = field(default_factory=dict)
    subjects: tuple[str, ...] = ("",)
    message: Sequence[str] = ()

    @property
    def names(self) -> list[str]:
        """The names of the causes, by which alerts remember what they have told."""
        return [f"{self.table.table} {self.kind.value} {subject}".rstrip() for subject in self.subjects]


def attention_needed(tables: Iterable[TableOverview], now: datetime) -> list[Attention]:
    """Return what needs a person, the worst kind and the longest wait first."""
    items = [item for table in tables for item in _of(table, now)]
    return sorted(items, key=lambda item: (_KINDS.index(item.kind), _wait_key(item), item.table.table))


def _wait_key(item: Attention) -> float:
    return item.since.timestamp() if item.since else math.inf


def _of(table: TableOverview, now: datetime) -> Iterator[Attention]:
    if isinstance(table.spec, InvalidSpec):
        problem = table.spec.cause
        key = f"{problem.key}: " if problem.key else ""
        cause = f"{problem.file.name}, line {problem.line}: {key}{problem.message}"
        yield Attention(table, Trouble.WRONG_SPEC, cause, Remedy.FIX_SPEC, problem.fix)
        return
    yield from _interrupted_repairs(table)
    if refused := table.refusal:
        # A person may let the newest refused version pass only: it contains those refused before it.
        last = table.verdicts.upto if table.verdicts else refused.version
        later = f"; version {last}, which came after it, was refused as well" if last > refused.version else ""
        cause, action = refusal_cause(refused) + later, Remedy.RUN if table.is_restored else Remedy.OVERRIDE
        way_out = _AFTER_RESTORE if table.is_restored else _AFTER_REFUSAL
        fields: dict[str, str | int] = {"version": last}
        subjects: tuple[str, ...] = (f"{refused.table_id}/{refused.version}",)
        yield Attention(table, Trouble.REFUSED, cause, action, way_out, table.since, fields, subjects)
    if refused := table.refused_since_changed_rules:
        cause = f"readers use its rows, which its rules refuse since these were changed: {refusal_cause(refused)}"
        fields, subjects = {"version": refused.version}, (f"{refused.table_id}/{refused.version} {refused.suite_hash}",)
        yield Attention(table, Trouble.REFUSED, cause, Remedy.OVERRIDE, _AFTER_REFUSAL, None, fields, subjects)
    if not table.refusal and table.verdicts and (wrong := table.verdicts.found_wrong):
        cause = (
            f"readers use version {table.certified}, whose rows are not those of its sources: {refusal_cause(wrong)}"
        )
        way_out, subjects = wrong.refused.partition("\n")[2], (f"{wrong.table_id}/{wrong.version} wrong",)
        yield Attention(table, Trouble.REFUSED, cause, Remedy.RUN, way_out, table.since, subjects=subjects)
    for deletes in table.questions.deletes:
        fields = {"version": deletes.source_version}
        cause = replace(deletes, samples=()).summary
        subjects = (f"deletes {deletes.interval_start:%Y-%m-%dT%H:%M} {deletes.source_version}",)
        yield Attention(
            table, Trouble.APPROVAL, cause, Remedy.ALLOW_DELETES, _AFTER_LOSS, fields=fields, subjects=subjects
        )
    if columns := table.questions.columns:
        names = ", ".join(column.name for column in columns)
        cause = f"records have fields without a column: {names}"
        subjects = tuple(f"column {column.name}" for column in columns)
        since = min(new.since for new in columns)
        yield Attention(table, Trouble.APPROVAL, cause, Remedy.DECIDE_COLUMNS, since=since, subjects=subjects)
    if table.condition is Condition.FAILED:
        newest, more = table.failed[0], len(table.failed) - 1
        others = f", and {more} more failed" if more else ""
        yield failed_task_attention(table, f"the task {newest.label} failed in the run {newest.run_id}{others}")
    if table.condition is Condition.STALE and table.freshness:
        newest_row, max_age = table.freshness.newest, table.freshness.max_age
        cause = f"its newest row is of {newest_row:{MINUTE}} UTC, and may be {max_age} old when a run ends"
        yield Attention(table, Trouble.STALE, cause, Remedy.RUN, since=table.since)
    yield from _given_up_files(table)
    yield from _old_rows(table, now)
    if table.has_far_too_many_files and table.measures:
        cause = f"it has {table.measures.files:,} data files; after maintenance {table.expected_files:,} would do"
        yield Attention(table, Trouble.HEALTH, cause, Remedy.MAINTAIN)
    if table.questions.has_lost_hold:
        cause = f"VACUUM is refused: {LOST_HOLD}"
        yield Attention(table, Trouble.HEALTH, cause, Remedy.STORAGE, AFTER_LOST_HOLD, subjects=("hold",))
    yield from _endangered_readers(table, now)


def failed_task_attention(table: TableOverview, failure: str) -> Attention:
    """Return what a person must know about the newest failed task of a table, after a sentence that names it."""
    newest = table.failed[0]
    why = failure_cause(newest.result)
    return Attention(
        table,
        Trouble.FAILED,
        f"{failure}: {why}" if why else failure,
        Remedy.REBUILD if newest.result and newest.result.is_misfit else Remedy.LOOK,
        failure_way_out(newest.result),
        since=newest.at,
        message=failure_message(newest.result),
    )


def misfit_attention(table: TableOverview, ops: OpsTables) -> list[Attention]:
    """Return that only a rebuild makes a table fit its spec; nothing if it fits, or if a failed task says so already.

    Only for a single table: it is opened if its spec has changed since its last batch.
    """
    end = table.streams.newest if table.streams else None
    has_failed = any(task.result and task.result.is_misfit for task in table.failed)
    if end is None or isinstance(table.spec, InvalidSpec) or has_failed or end.intent.spec_hash == table.spec.spec_hash:
        return []
    changes = changes_since(table.spec, Winner(end.intent, end.version), ops).with_effect(Effect.REBUILD)
    cause = f"only a rebuild makes it fit its spec: {'; '.join(map(str, changes))}"
    return [Attention(table, Trouble.MISFIT, cause, Remedy.REBUILD, _AFTER_MISFIT)] if changes else []


def refusal_cause(refused: GateResult) -> str:
    """Return why a version was refused. The gate's own text may have values of rows: samples, errors, observations."""
    about, failed = (
        f"{refused.table} version {refused.version} refused",
        [each for each in refused.checks if each.refuses],
    )
    if not failed:
        return about
    others = f"; and {len(failed) - 1} more failed" if failed[1:] else ""
    return f"{about}: {failure_without_values(failed[0])}{others}"


def _interrupted_repairs(table: TableOverview) -> Iterator[Attention]:
    for repair in table.questions.repairs:
        way_out = f"It goes on with `{repair.command}`, or as soon as the task of its run in table_repair is cleared."
        subjects = (repair.repair.id,)
        yield Attention(table, Trouble.INTERRUPTED, repair.interruption, Remedy.REPAIR, way_out, subjects=subjects)


def _given_up_files(table: TableOverview) -> Iterator[Attention]:
    if number := table.given_up_files:
        files = table.failed_files.files if table.failed_files else ()
        first, more = files[0], f", and {counted(number - 1, 'more file')}" if number > 1 else ""
        # Without the reason, which may have values of rows: the first line of a CSV file without a header.
        cause = f"{first.path} was given up after {counted(first.attempts, 'attempt')}{more}"
        way_out = "`lakehouse replay` tries them again, and `lakehouse give-up` says that nobody waits for them."
        subjects = tuple(file.path for file in files[:number])
        yield Attention(table, Trouble.GIVEN_UP, cause, Remedy.DELIVER, way_out, first.at, subjects=subjects)


def _old_rows(table: TableOverview, now: datetime) -> Iterator[Attention]:
    waiting = table.waiting
    if waiting is None or waiting.oldest is None or isinstance(table.spec, GoldSpec | InvalidSpec):
        return
    warn_after = table.spec.quarantine.warn_after
    if now - waiting.oldest > RETENTION.parse(warn_after):
        cause = f"{counted(waiting.rows, 'row waits', 'rows wait')}, the first of them for more than {warn_after}"
        yield Attention(table, Trouble.OLD_ROWS, cause, Remedy.REPLAY, since=waiting.oldest)


def _endangered_readers(table: TableOverview, now: datetime) -> Iterator[Attention]:
    if readers := table.readers_in_danger(now):
        behind = ", ".join(f"{reader.name} (version {reader.version})" for reader in readers)
        cause = f"VACUUM is refused, because it would soon cut off {behind}"
        way_out = "Run what is behind, or get the refused newer versions past their gate."
        since, names = min(reader.since for reader in readers if reader.since), tuple(reader.name for reader in readers)
        yield Attention(table, Trouble.HEALTH, cause, Remedy.RUN, way_out, since, subjects=names)
