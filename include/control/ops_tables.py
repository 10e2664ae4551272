"""The ledger's tables of one lakehouse: the Delta tables under `ops/`, and the states of its tables."""

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
class OpsTables:
    """The ledger's tables. Each is opened at its first use and kept open, because opening one reads its whole log.

    Attributes:
        paths: the folders of the lakehouse.
        keep_commits: how long a writer keeps the events of `ops.commits`; None keeps them for ever.
    """

    paths: LakehousePaths
    keep_commits: timedelta | None = field(default=None, kw_only=True)

    @cached_property
    def ledger(self) -> Ledger:
        """The plans and results of batches, and the files that they loaded (`ops.batches`, `ops.files`)."""
        return Ledger(self.paths)

    @cached_property
    def states(self) -> TableStates:
        """The current state of each table."""
        return TableStates(self.paths)

    @cached_property
    def commits(self) -> CommitHistory:
        """The waits and conflicts of each commit (`ops.commits`)."""
        return CommitHistory(self.paths, self.keep_commits)

    @cached_property
    def gates(self) -> Gates:
        """The results of the gates, and the overrides (`ops.gates`)."""
        return Gates(self.paths)

    @cached_property
    def new_columns(self) -> NewColumns:
        """The columns that sources brought to bronze tables, and the decisions about them (`ops.columns`)."""
        return NewColumns(self.paths)

    @cached_property
    def deletes(self) -> DeleteRecords:
        """The deletes by absence that need an approval, and the approvals (`ops.deletes`)."""
        return DeleteRecords(self.paths)

    @cached_property
    def quarantine(self) -> QuarantineEvents:
        """The decisions about quarantined rows (`ops.quarantine`)."""
        return QuarantineEvents(self.paths)

    @cached_property
    def specs(self) -> SpecHistory:
        """The specs that batches used (`ops.specs`)."""
        return SpecHistory(self.paths)

    @cached_property
    def rebuilds(self) -> Rebuilds:
        """The rebuilds of tables (`ops.rebuilds`)."""
        return Rebuilds(self.paths)
