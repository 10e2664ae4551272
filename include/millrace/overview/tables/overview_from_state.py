"""The overview of a table from its spec and its state: which facts are of this table, and what its condition is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from millrace.contracts.spec.table_spec import AnySpec, SilverSpec
from millrace.control.gates.verdicts import Verdicts
from millrace.control.ledger.states.contention import Contention
from millrace.control.ledger.states.failed_files import FailedFiles
from millrace.control.ledger.states.measures import Measures
from millrace.control.ledger.states.recent_batches import BatchKind, RecentBatches
from millrace.control.ledger.states.streams import Streams
from millrace.control.ledger.states.table_state import Part, TableState
from millrace.control.ledger.states.totals import Totals
from millrace.control.ledger.states.waiting_rows import WaitingRows
from millrace.control.maintenance.health_days import HealthDays
from millrace.overview.tables.failed_task import FailedTask
from millrace.overview.tables.freshness import freshness_of
from millrace.overview.tables.table_overview import Condition, Questions, TableOverview, still_open
from millrace.specs.invalid_spec import InvalidSpec


def overview_of(
    spec: AnySpec | InvalidSpec, state: TableState, questions: Questions, failed: Sequence[FailedTask], now: datetime
) -> TableOverview:
    """Return a table in the list, from its spec, its state, the open questions about it, and its failed tasks."""
    measures, streams = state.part(Measures), state.part(Streams)
    table_id = next((part.table_id for part in (streams, measures) if part), None)

    def current(kind: type[Part]) -> Part | None:
        """Return a part of the state, unless it is of an earlier table of this name."""
        part = state.part(kind)
        return part if part and table_id in (None, part.table_id) else None

    measures, recent, waiting = current(Measures), current(RecentBatches), current(WaitingRows)
    versions = [end.version for end in streams.ends.values()] if streams else []
    table = TableOverview(
        spec,
        newest=max([*versions, *([measures.version] if measures else [])], default=None),
        verdicts=current(Verdicts),
        measures=measures,
        streams=streams,
        batches=recent.batches if recent else (),
        waiting=None if waiting is None or waiting.closing else waiting,
        failed_files=current(FailedFiles),
        totals=current(Totals),
        contention=current(Contention),
        health=current(HealthDays),
    )
    if isinstance(spec, InvalidSpec):
        return table
    freshness = freshness_of(spec, table.verdicts, table.last)
    table = replace(table, freshness=freshness, questions=still_open(questions, spec, streams))
    table = replace(table, failed=[task for task in failed if not is_over(task, table)])
    condition, since = _condition(table, now)
    return replace(table, condition=condition, since=since)


def holds_at(table: TableOverview, later: datetime) -> bool:
    """Whether the condition of a table is still right at a later time, if nothing has changed: rows become stale."""
    is_certified = table.condition in (Condition.CERTIFIED, Condition.CERTIFIED_BY_HAND)
    return not is_certified or not table.freshness or later <= table.freshness.stale_at


def is_over(task: FailedTask, table: TableOverview) -> bool:
    """Return whether nothing is to be done about a failed task.

    Either it was about an earlier table of this name, or readers have the rows of the version that it refused, or newer
    ones, by now; or a later full snapshot was read, which nothing earlier holds up. What bronze did not load does not
    depend on the table: no later run loads the files of that day.
    """
    refused, certified = task.refused_version, table.certified
    if table.created and task.at < table.created:
        return refused is not None or not table.table.startswith("bronze.")
    if refused is not None:
        return certified is not None and certified >= refused and not table.is_restored
    if not (isinstance(table.spec, SilverSpec) and table.spec.snapshot) or table.questions.deletes:
        return False
    is_waiting = table.streams is not None and table.streams.sources.waiting
    later = [batch for batch in table.batches if batch.at > task.at and batch.kind is BatchKind.LOAD]
    return not is_waiting and certified is not None and any(batch.version <= certified for batch in later)


def _condition(table: TableOverview, now: datetime) -> tuple[Condition, datetime | None]:
    """Return the condition of a table with a sound spec, and when it began."""
    verdicts, questions, freshness = table.verdicts, table.questions, table.freshness
    closed = {batch.version: batch.at for batch in table.batches}
    if table.refusal:
        return Condition.REFUSED, closed.get(table.refusal.version)
    if table.refused_since_changed_rules:
        return Condition.REFUSED, None  # since somebody changed the rules
    if questions.deletes or questions.columns:
        return Condition.APPROVAL, min((column.since for column in questions.columns), default=None)
    if table.failed:
        return Condition.FAILED, table.failed[-1].at
    if table.newest is None:
        return Condition.NEVER_RUN, None
    checked = max(verdicts.walked, verdicts.upto) if verdicts else -1
    # A version above the checked one without a batch is one of maintenance, which changes no row.
    unchecked = [at for version, at in closed.items() if version > checked]
    if verdicts is None or unchecked:
        return Condition.UNCHECKED, min(unchecked, default=None)
    if freshness and now > freshness.stale_at:
        return Condition.STALE, freshness.stale_at
    by_hand = verdicts.certified_by_hand
    return Condition.CERTIFIED_BY_HAND if by_hand else Condition.CERTIFIED, closed.get(verdicts.upto)
