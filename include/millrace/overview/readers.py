"""The readers of a table and since when their versions are old, by the states of tables alone.

VACUUM finds the same by the logs (`millrace.control.maintenance.retention`). A page has no time to read them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from millrace.control.ledger.states.recent_batches import MOST_BATCHES
from millrace.control.maintenance.retention import CERTIFIED_READERS, Reader
from millrace.overview.tables.table_overview import TableOverview
from millrace.specs.table_graph import TableGraph


def with_all_readers(tables: Iterable[TableOverview]) -> list[TableOverview]:
    """Return the tables of a whole lakehouse, each with its readers."""
    every = {table.table: table for table in tables}
    readers = TableGraph.of(table.spec for table in every.values()).readers
    return [with_readers(table, map(every.__getitem__, readers.get(name, ()))) for name, table in every.items()]


def with_readers(table: TableOverview, downstream: Iterable[TableOverview]) -> TableOverview:
    """Return a table with the readers of its certified version, and the tables that read it."""
    readers = []
    if table.certified is not None:
        readers.append(Reader(CERTIFIED_READERS, table.certified, _since(table, table.certified)))
    for other in downstream:
        end = other.streams.newest if other.streams else None
        if other.streams is None or end is None:
            continue
        needed = other.streams.sources.needed_version(table.table, table.table_id, is_closed=end.rows is not None)
        if needed is not None:
            readers.append(Reader(other.table, needed, _since(table, needed, other.last.at if other.last else None)))
    return replace(table, readers=tuple(readers))


def _since(table: TableOverview, version: int, read_at: datetime | None = None) -> datetime | None:
    """Return when a batch made a version an old one; None if no batch did.

    The state has only the newest batches. If all of them are newer than the version, the time of the first one is too
    late, and `read_at`, when the reader read the version, is nearer.
    """
    newer = [batch.at for batch in table.batches if batch.version > version]
    if len(newer) == MOST_BATCHES and read_at:
        newer.append(read_at)
    return min(newer, default=None)
