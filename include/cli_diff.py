"""What `lakehouse diff` shows: how tables differ from their specs, and what follows."""

from __future__ import annotations

from collections.abc import Sequence

from include.cli_catalog import command_catalog
from include.control.planner import stream_position
from include.control.records import Records
from include.control.table_diff import TableDiff, table_diff
from include.paths import LakehousePaths
from include.settings import Settings


def table_diffs(tables: Sequence[str], settings: Settings) -> list[TableDiff]:
    """The differences of the tables named, of all for none; in build order.

    Raises:
        SpecError: a spec is wrong, or there is no such table.
        TornLogError: a log does not continue where it was last resolved.
    """
    catalog, records = command_catalog(settings.tables), Records(LakehousePaths(settings.root))
    specs = [catalog.spec(table) for table in tables] or list(catalog.specs.values())
    found = []
    for spec in specs:
        position = stream_position(spec, records.paths, records.ledger)
        found.append(table_diff(spec, position.last if position else None, records))
    return found


def diff_lines(found: Sequence[TableDiff]) -> list[str]:
    """What differs, a line for each table and effect; one line where nothing does."""
    lines = [line for diff in found for line in diff.lines()]
    tables = f"{len(found)} tables" if len(found) != 1 else found[0].table
    return lines or [f"Nothing differs between {tables} and the spec."]
