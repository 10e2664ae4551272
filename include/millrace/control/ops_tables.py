"""The ledger's tables of one lakehouse: the Delta tables under `ops/`, and the states of its tables."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa

from millrace.control.gates.gates import Gates
from millrace.control.ledger.commit_history import CommitHistory
from millrace.control.ledger.deletes import DeleteRecords
from millrace.control.ledger.erasures import Erasures
from millrace.control.ledger.holds import Holds
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.new_columns import NewColumns
from millrace.control.ledger.ops_table import OpsSize, OpsTable
from millrace.control.ledger.rebuilds import Rebuilds
from millrace.control.ledger.repairs import Repairs
from millrace.control.ledger.spec_history import SpecHistory
from millrace.control.ledger.states.table_state import TableStates
from millrace.control.quarantine.events import QuarantineEvents
from millrace.paths import LakehousePaths

OPS_TABLES = (
    "batches",
    "files",
    "gates",
    "commits",
    "columns",
    "deletes",
    "quarantine",
    "specs",
    "rebuilds",
    "erasures",
    "suppressions",
    "holds",
    "repairs",
)
"""The names of the tables under `ops/`."""


class OpsTables:
    """The ledger's tables. Each reads its whole log at its first use, so that callers share them.

    Attributes:
        paths: the folders of the lakehouse.
        ledger: the plans and results of batches, and the files that they loaded (`ops.batches`, `ops.files`).
        states: the current state of each table.
        commits: the waits and conflicts of each commit (`ops.commits`).
        gates: the results of the gates, and the overrides (`ops.gates`).
        new_columns: the columns that sources brought to bronze tables, and the decisions about them (`ops.columns`).
        deletes: the deletes by absence that need an approval, and the approvals (`ops.deletes`).
        quarantine: the decisions about quarantined rows (`ops.quarantine`).
        specs: the specs that batches used (`ops.specs`).
        rebuilds: the rebuilds of tables (`ops.rebuilds`).
        holds: the tables whose old versions must stay (`ops.holds`).
        erasures: the erasures of subjects (`ops.erasures`).

    Args:
        paths: the folders of the lakehouse.
        keep_commits: how long a writer keeps the events of `ops.commits`; None keeps them for ever.
        deletes: another reader of `ops.deletes`, for a rebuild.
    """

    def __init__(
        self,
        paths: LakehousePaths,
        *,
        keep_commits: timedelta | None = None,
        deletes: DeleteRecords | None = None,
    ) -> None:
        self.paths = paths
        self.ledger = Ledger(paths)
        self.states = TableStates(paths)
        self.commits = CommitHistory(paths, keep_commits)
        self.gates = Gates(paths)
        self.new_columns = NewColumns(paths)
        self.deletes = deletes or DeleteRecords(paths)
        self.quarantine = QuarantineEvents(paths)
        self.specs = SpecHistory(paths)
        self.rebuilds = Rebuilds(paths)
        self.holds = Holds(paths)
        self.repairs = Repairs(paths)
        self.erasures = Erasures(paths)
        self._logs = {name: OpsTable.of(paths, name, pa.schema([])) for name in OPS_TABLES}

    def sizes(self) -> dict[str, OpsSize]:
        """Return name -> size of each table under `ops/`; 0 for a table without events."""
        return {name: log.size() for name, log in self._logs.items()}
