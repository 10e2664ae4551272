"""What a ledger holds, as tests compare it."""

from __future__ import annotations

from include.control.batch import FileFact
from include.control.ledger import Ledger


def loaded_by_path(ledger: Ledger, table: str, table_id: str) -> dict[str, FileFact]:
    """path -> file, for every path that a winning attempt loaded into the table; as it was loaded last."""
    return {file.path: file for file in ledger.loaded_files(table, table_id)}
