"""The content of a ledger, for comparisons."""

from __future__ import annotations

from millrace.control.ledger.events import FileEvent, file_fact
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.batch import FileFact


def loaded_by_path(ledger: Ledger, table: str, table_id: str) -> dict[str, FileFact]:
    """Return path -> file as last loaded, for every path that a winning attempt loaded into the table."""
    tokens = ledger.versions(table, table_id)
    events = ledger.file_events(table, table_id)
    planned = [row for row in events if row["event"] == FileEvent.PLANNED and row["token"] in tokens]
    return {row["path"]: file_fact(row) for row in planned}
