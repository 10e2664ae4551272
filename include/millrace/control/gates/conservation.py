"""Row conservation: every row that a batch read is counted once, and the table grows by the counted rows."""

from __future__ import annotations

from millrace.contracts.job.report import RowCounts
from millrace.contracts.lake_path import LakePath
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.batch import Winner
from millrace.control.log.delta_log import read_commit
from millrace.errors import ConservationError

_WAY_OUT = "The version is not certified; compare it with its sources before anything else."


def rows_of_rebuild(table: LakePath, winner: Winner) -> RowCounts:
    """Return the row counts of a commit that replaced all rows of a table."""
    before, after = table_rows(table, winner.version - 1), table_rows(table, winner.version)
    updated = min(before, after)
    return RowCounts(read=after, applied=after, inserted=after - updated, updated=updated, deleted=before - updated)


def rows_of_deletion(table: LakePath, winner: Winner) -> RowCounts:
    """Return the row counts of a commit that deleted rows, or replaced them, as Delta counted them."""
    commit = read_commit(table, winner.version)
    metrics = commit.metrics if commit else {}
    if commit and commit.operation == "WRITE":
        written = int(metrics.get("numOutputRows", "0")) - int(metrics.get("numCopiedRows", "0"))
        gone = table_rows(table, winner.version - 1) - table_rows(table, winner.version) + written
        return RowCounts(read=written, applied=written, inserted=written, deleted=gone)
    if (counted := metrics.get("numTargetRowsDeleted", metrics.get("numDeletedRows"))) is not None:
        return RowCounts(deleted=int(counted))
    return RowCounts(deleted=table_rows(table, winner.version - 1) - table_rows(table, winner.version))


def require_conserved(winner: Winner, rows: RowCounts) -> None:
    """Check that the counts of a batch add up.

    Raises:
        ConservationError: the counts do not add up to the rows read.
    """
    if not rows.are_conserved:
        raise ConservationError(f"{_name(winner)}: the row counts do not add up: {rows.model_dump()}", _WAY_OUT)


def check_conservation(table: LakePath, winner: Winner, rows: RowCounts) -> None:
    """Check that the counts of a batch add up, and that the table grew by them.

    Raises:
        ConservationError: the counts do not add up to the rows read, or the table did not grow by
            `inserted - deleted`.
    """
    require_conserved(winner, rows)
    before, after = table_rows(table, winner.version - 1), table_rows(table, winner.version)
    if after != before + rows.inserted - rows.deleted:
        raise ConservationError(
            f"{_name(winner)}: the table went from {before} to {after} rows, but {rows.inserted} were inserted and "
            f"{rows.deleted} deleted",
            _WAY_OUT,
        )


def _name(winner: Winner) -> str:
    return f"{winner.intent.table} version {winner.version}, batch {winner.batch_seq}"
