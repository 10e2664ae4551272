"""The overviews of all tables in a process that lives for long: only those about which something changed are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.ledger.states.table_state import TableState
from millrace.overview.readers import with_all_readers
from millrace.overview.tables.failed_task import FailedTask
from millrace.overview.tables.overview_from_state import holds_at, overview_of
from millrace.overview.tables.questions import Questions
from millrace.overview.tables.table_overview import TableOverview
from millrace.specs.invalid_spec import InvalidSpec


class OverviewInput(NamedTuple):
    """What an overview is made from; its attributes are those of `overview_of`."""

    spec: AnySpec | InvalidSpec
    state: TableState
    questions: Questions
    failed: Sequence[FailedTask]


class _Known(NamedTuple):
    """What was read last: table -> the facts, table -> its overview, and the overviews with the readers of each."""

    facts: Mapping[str, OverviewInput] = {}
    overviews: Mapping[str, TableOverview] = {}
    with_readers: Sequence[TableOverview] = ()


class KnownOverviews:
    """Keeps the overviews of the last reading. Several threads may use it."""

    def __init__(self) -> None:
        self._known = _Known()

    def read(self, facts: Mapping[str, OverviewInput], now: datetime) -> list[TableOverview]:
        """Return the overview of each table at a time, in the order of the facts, each with its readers."""
        known = self._known
        overviews = {table: _overview(known, table, of_table, now) for table, of_table in facts.items()}
        if [*map(id, overviews.values())] != [*map(id, known.overviews.values())]:
            known = self._known = _Known(facts, overviews, with_all_readers(overviews.values()))
        return list(known.with_readers)


def _overview(known: _Known, table: str, facts: OverviewInput, now: datetime) -> TableOverview:
    overview = known.overviews.get(table)
    if overview and known.facts[table] == facts and holds_at(overview, now):
        return overview
    return overview_of(*facts, now)
