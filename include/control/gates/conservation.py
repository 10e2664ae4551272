"""Row conservation: every row that a batch read has one fate, and the table's rows agree with the counts."""

from __future__ import annotations

from include.contracts.job.report import RowFates
from include.contracts.lake_path import LakePath
from include.control.ledger.measures import table_rows
from include.control.log.batch import Winner
from include.errors import ConservationError

_WHAT_NEXT = "The version is not certified; compare it with its sources before anything else."


def rows_of_rebuild(table: LakePath, winner: Winner) -> RowFates:
    """The row fates of the commit that put other rows in the place of all that were there."""
    before, after = table_rows(table, winner.version - 1), table_rows(table, winner.version)
    updated = min(before, after)
    return RowFates(read=after, applied=after, inserted=after - updated, updated=updated, deleted=before - updated)


def require_conserved(winner: Winner, rows: RowFates) -> None:
    """Hold a batch's counts against each other.

    Raises:
        ConservationError: the fates do not add up to the rows read.
    """
    if not rows.are_conserved:
        msg = f"{_named(winner)}: the fates of the rows do not add up: {rows.model_dump()}\n{_WHAT_NEXT}"
        raise ConservationError(msg)


def check_conservation(table: LakePath, winner: Winner, rows: RowFates) -> None:
    """Hold a batch's counts against each other and against the table.

    Raises:
        ConservationError: the fates do not add up to the rows read, or the table did not grow by
            `inserted - deleted`.
    """
    require_conserved(winner, rows)
    before, after = table_rows(table, winner.version - 1), table_rows(table, winner.version)
    if after != before + rows.inserted - rows.deleted:
        msg = (
            f"{_named(winner)}: the table went from {before} to {after} rows, but {rows.inserted} were inserted and "
            f"{rows.deleted} deleted\n{_WHAT_NEXT}"
        )
        raise ConservationError(msg)


def _named(winner: Winner) -> str:
    return f"{winner.intent.table} version {winner.version}, batch {winner.batch_seq}"
