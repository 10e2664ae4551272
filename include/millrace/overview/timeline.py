"""The versions of a table, the newest first: what wrote each, what became of its rows, and what its gate said."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from millrace.control.gates.result import GateResult
from millrace.control.ledger.commit_history import BATCH, TableWrite
from millrace.control.ledger.states.recent_batches import RecentBatch
from millrace.control.ops_tables import OpsTables


@dataclass(frozen=True)
class VersionEntry:
    """A version of a table, written by a batch or by maintenance.

    Attributes:
        version: the version.
        at: when it was closed or, for maintenance, recorded.
        batch: the batch that wrote it; None for maintenance.
        write: the waits and lost races of its writer, or the maintenance; None if there were none.
        result: the newest result of its gate, an override before others, or else of the later version that was checked
            with it, as a run checks only the last of its batches; None if it was not checked.
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
    results: dict[int, list[GateResult]] = defaultdict(list)
    covering: dict[str, list[GateResult]] = defaultdict(list)
    for recorded in ops.gates.results_between(table, table_id, least, None if upto is None else upto + limit):
        results[recorded.result.version].append(recorded.result)
        for name in recorded.result.batches:
            covering[name].append(recorded.result)
    writes = ops.commits.between(table, least, upto)
    of_token = {write.token: write for write in writes if write.operation == BATCH}
    entries = []
    for batch in batches:
        judged = results[batch.version] or covering[f"{batch.stream}/{batch.batch_seq}"]
        entries.append(VersionEntry(batch.version, batch.at, batch, of_token.get(batch.token), result_in_force(judged)))
    entries += [
        VersionEntry(write.version, write.at, write=write)
        for write in writes
        if write.operation != BATCH and write.version is not None
    ]
    return sorted(entries, key=lambda entry: entry.version, reverse=True)


def result_in_force(results: Sequence[GateResult]) -> GateResult | None:
    """Return the newest of the results of one version, oldest first; an override before others; None without any."""
    overrides = [result for result in results if result.override]
    return (overrides or list(results))[-1] if results else None
