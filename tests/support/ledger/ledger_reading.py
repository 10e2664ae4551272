"""What a ledger holds, as tests compare it."""

from __future__ import annotations

from include.control.ledger.events import FileEvent, file_fact
from include.control.ledger.ledger import Ledger
from include.control.log.batch import FileFact


def loaded_contents(ledger: Ledger, table: str, table_id: str) -> list[FileFact]:
    """Every content that a winning attempt loaded into the table, oldest first: one event after the other."""
    tokens = ledger.versions(table, table_id)
    events = ledger.file_events(table, table_id)
    return [file_fact(row) for row in events if row["event"] == FileEvent.PLANNED and row["token"] in tokens]


def loaded_by_path(ledger: Ledger, table: str, table_id: str) -> dict[str, FileFact]:
    """path -> file, for every path that a winning attempt loaded into the table; as it was loaded last."""
    return {file.path: file for file in loaded_contents(ledger, table, table_id)}
