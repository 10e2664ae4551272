"""Row conservation: every row that a batch read has one fate, and the table's rows agree with the counts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from include.contracts.job_report import RowFates
from include.control.batch import Winner
from include.errors import ConservationError


def table_rows(table: Path, version: int) -> int:
    """The rows of one version, from the statistics of its data files; nothing is scanned."""
    actions = pa.table(DeltaTable(str(table), version=version).get_add_actions(flatten=True))
    return int(pc.sum(actions["num_records"]).as_py() or 0) if actions.num_rows else 0


def check_conservation(table: Path, winner: Winner, rows: RowFates) -> None:
    """Hold a batch's counts against each other and against the table.

    Raises:
        ConservationError: the fates do not add up to the rows read, or the table did not grow by
            `inserted - deleted`.
    """
    where = f"{winner.intent.table} version {winner.version}, batch {winner.batch_seq}"
    what_next = "The version is not certified; compare it with its sources before anything else."
    if not rows.are_conserved:
        raise ConservationError(f"{where}: the fates of the rows do not add up: {rows.model_dump()}. {what_next}")
    before, after = table_rows(table, winner.version - 1), table_rows(table, winner.version)
    if after != before + rows.inserted - rows.deleted:
        msg = (
            f"{where}: the table went from {before} to {after} rows, but {rows.inserted} were inserted and "
            f"{rows.deleted} deleted. {what_next}"
        )
        raise ConservationError(msg)
