"""All that is written down of one lakehouse beside its tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property

from include.control.gates.gates import Gates
from include.control.ledger.commit_history import CommitHistory
from include.control.ledger.deletes import DeleteRecords
from include.control.ledger.ledger import Ledger
from include.control.ledger.new_columns import NewColumns
from include.control.ledger.rebuilds import Rebuilds
from include.control.ledger.spec_history import SpecHistory
from include.control.ledger.table_state import TableStates
from include.control.quarantine.events import QuarantineEvents
from include.paths import LakehousePaths


@dataclass(frozen=True)
class Records:
    """The tables of the ledger, each opened once and then followed: opening one reads its log again.

    Attributes:
        paths: where they lie.
        keep_commits: how long whoever writes keeps the events of `ops.commits`; for ever where it is left out.
    """

    paths: LakehousePaths
    keep_commits: timedelta | None = field(default=None, kw_only=True)

    @cached_property
    def ledger(self) -> Ledger:
        """What batches were planned to do, and which files they loaded."""
        return Ledger(self.paths)

    @cached_property
    def states(self) -> TableStates:
        """The current state of each table."""
        return TableStates(self.paths)

    @cached_property
    def commits(self) -> CommitHistory:
        """How writers got on with each other."""
        return CommitHistory(self.paths, self.keep_commits)

    @cached_property
    def gates(self) -> Gates:
        """What the gates said."""
        return Gates(self.paths)

    @cached_property
    def new_columns(self) -> NewColumns:
        """The columns that drift has brought to bronze tables."""
        return NewColumns(self.paths)

    @cached_property
    def deletes(self) -> DeleteRecords:
        """The deletes by absence that were asked for and allowed."""
        return DeleteRecords(self.paths)

    @cached_property
    def quarantine(self) -> QuarantineEvents:
        """What became of quarantined rows."""
        return QuarantineEvents(self.paths)

    @cached_property
    def specs(self) -> SpecHistory:
        """The specs that batches followed."""
        return SpecHistory(self.paths)

    @cached_property
    def rebuilds(self) -> Rebuilds:
        """The tables that are being built anew."""
        return Rebuilds(self.paths)
