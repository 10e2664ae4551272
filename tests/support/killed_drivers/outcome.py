"""The content of a lakehouse that must be the same after a killed and repeated run as after a clean one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from millrace.contracts.job.requests import RowFilter
from millrace.contracts.row_status import RowStatus
from millrace.control.gates.gates import Gates
from millrace.control.landing.file_states import FileState, file_states
from millrace.control.ledger.events import BatchEvent, FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.control.log.delta_log import commits_after
from millrace.control.log.stored_tables import is_table, open_table
from millrace.control.quarantine.rows import quarantined_rows
from millrace.control.quarantine.stored_rows import StoredRows
from millrace.paths import LakehousePaths
from tests.support.killed_drivers.steps import numbers

VARYING_COLUMNS = ("_table_id", "_ingested_at", "_batch_token", "first_seen", "last_seen")
"""Columns in which two correct runs differ."""


def outcome(paths: LakehousePaths, table: str) -> dict[str, Any]:
    """Return rows, commits, ledger and certificates of a table and its secondary tables, without tokens and times."""
    tokens = _tokens(paths.table(table))
    beside = {"main": paths.table(table), "quarantine": paths.quarantine(table)}
    if table.startswith("silver."):
        beside["tombstones"] = paths.tombstones(table, table_id(paths.table(table)))
    beside = {name: path for name, path in beside.items() if DeltaTable.is_deltatable(str(path))}
    return {
        "rows": {name: _rows(path, tokens) for name, path in beside.items()},
        "commits": {name: _commits(path, tokens) for name, path in beside.items()},
        "batches": _batches(paths, table, tokens),
        "files": _files(paths, table, tokens),
        "columns": _events_of_columns(paths, table),
        "quarantined": sorted(
            (row.id, row.status, row.attempts, row.fix, row.reasons)
            for row in quarantined_rows(StoredRows(table, paths), RowFilter(statuses=tuple(RowStatus)))
        ),
        "states": [replace(state, seen_at=None, tries=0) for state in states_of_files(paths, table)],
        "certified": Gates(paths).certified(table),
        "verdicts": sorted((gate.result.version, gate.result.passed) for gate in Gates(paths).results(table)),
    }


def lost_attempts(paths: LakehousePaths, table: str) -> list[str]:
    """Return the ledger's events of the attempts that did not become a batch: no commit of theirs, if all is right."""
    tokens = _tokens(paths.table(table)).values()
    return [row["event"] for row in Ledger(paths)._batches.events(table) if row["token"] not in tokens]


def states_of_files(paths: LakehousePaths, table: str) -> list[FileState]:
    """Return the files of a bronze table, as `lakehouse files` shows them."""
    return file_states(Ledger(paths), table, table_id(paths.table(table)))


def _tokens(path: Path) -> dict[int, str]:
    """Return batch_seq -> the winning token, from the table's log."""
    won = [commit.metadata for commit in commits_after(path, -1) if numbers(commit)]
    assert len({metadata["batch_seq"] for metadata in won}) == len(won), "a batch was committed twice"
    return {metadata["batch_seq"]: metadata["token"] for metadata in won}


def _rows(path: Path, tokens: dict[int, str]) -> list[str]:
    rows = DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    kept = [{name: value for name, value in row.items() if name not in VARYING_COLUMNS} for row in rows]
    right = [row["_batch_token"] == tokens.get(row["_batch_seq"]) for row in rows]
    return sorted(f"{row} of the winner: {of_winner}" for row, of_winner in zip(kept, right, strict=True))


def _commits(path: Path, tokens: dict[int, str]) -> list[tuple[int, str, list[int], bool]]:
    """Return version, operation, number of the batch, and whether it has the winner's token, for each commit."""
    return [
        (
            commit.version,
            commit.operation,
            numbers(commit),
            commit.metadata.get("token") == tokens.get(commit.metadata.get("batch_seq", 0)),
        )
        for commit in commits_after(path, -1)
    ]


def _batches(paths: LakehousePaths, table: str, tokens: dict[int, str]) -> list[tuple[Any, ...]]:
    passing = (BatchEvent.CLOSING, BatchEvent.OUTLIVED)
    rows = [row for row in Ledger(paths)._batches.events(table) if row["event"] not in passing]
    return [
        (row["batch_seq"], row["event"], row["version"], row["rows"]) for row in rows if row["token"] in tokens.values()
    ]


def _events_of_columns(paths: LakehousePaths, table: str) -> list[tuple[str, str]]:
    """Return all that was ever recorded of new columns: (column, state)."""
    path = paths.ops("columns")
    events = open_table(path).to_pyarrow_table().to_pylist() if is_table(path) else []
    return sorted((event["column"], event["event"]) for event in events if event["table"] == table)


def _files(paths: LakehousePaths, table: str, tokens: dict[int, str]) -> list[tuple[Any, ...]]:
    """Return the files that the winners loaded, with their rows, also of drivers that died before the closing."""
    rows = Ledger(paths)._files.events(table, event=FileEvent.LOADED)
    assert {row["token"] for row in rows} <= set(tokens.values())
    return sorted({(row["path"], row["batch_seq"], row["rows_read"], row["rows_written"]) for row in rows})
