"""The versions of a table, the newest first: what wrote each, what became of its rows, and what its gate said."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from include.control.gates.gates import RecordedResult
from include.control.gates.result import GateResult
from include.control.ledger.commit_history import BATCH, TableWrite
from include.control.ledger.states.recent_batches import RecentBatch
from include.control.ops_tables import OpsTables


@dataclass(frozen=True)
class VersionEntry:
    """A version of a table, written by a batch or by maintenance.

    Attributes:
        version: the version.
        at: when it was closed or, for maintenance, recorded.
        batch: the batch that wrote it; None for maintenance.
        write: the waits and lost races of its writer, or the maintenance; None if there were none.
        result: the newest result of its gate, an override before others; None if it was not checked.
    """

    version: int
    at: datetime
    batch: RecentBatch | None = None
    write: TableWrite | None = None
    result: GateResult | None = None


def timeline(table: str, table_id: str, ops: OpsTables, upto: int | None = None, limit: int = 50) -> list[VersionEntry]:
    """Return the versions of a table from `upto` downward, with at most `limit` batches."""
    batches = list(islice(ops.ledger.history.closed(table, table_id, upto), limit))
    least = batches[-1].version if len(batches) == limit else 0
    results: dict[int, GateResult] = {}
    for recorded in ops.gates.results_between(table, table_id, least, upto):
        results[recorded.result.version] = _in_force(results.get(recorded.result.version), recorded)
    writes = ops.commits.between(table, least, upto)
    of_token = {write.token: write for write in writes if write.operation == BATCH}
    entries = [
        VersionEntry(batch.version, batch.at, batch, of_token.get(batch.token), results.get(batch.version))
        for batch in batches
    ]
    entries += [
        VersionEntry(write.version, write.at, write=write)
        for write in writes
        if write.operation != BATCH and write.version is not None
    ]
    return sorted(entries, key=lambda entry: entry.version, reverse=True)


def _in_force(before: GateResult | None, recorded: RecordedResult) -> GateResult:
    return before if before and before.override and not recorded.result.override else recorded.result
