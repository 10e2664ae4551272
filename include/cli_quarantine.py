"""What `lakehouse quarantine` shows: which rows the tables refused, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.table import Table
from rich.text import Text

from include.catalog import load_catalog
from include.cli_views import MISSING, count, new_table
from include.contracts.interval import Interval
from include.control.quarantined import Refusal, RefusedRow, refusals, refused_rows
from include.paths import LakehousePaths
from include.settings import Settings


def all_refusals(settings: Settings, domain: str | None) -> dict[str, list[Refusal]]:
    """table -> why rows of it are in quarantine; of one domain, or of all.

    Raises:
        SpecError: a spec is wrong, or there is no such domain.
    """
    catalog, paths = load_catalog(settings.tables), LakehousePaths(settings.root)
    specs = catalog.of_domain(domain) if domain else catalog.specs.values()
    return {spec.table: found for spec in specs if (found := refusals(spec.table, paths))}


def rows_of(table: str, settings: Settings, intervals: Sequence[Interval], reason: str) -> list[RefusedRow]:
    """The table's quarantined rows, the newest batch first.

    Raises:
        SpecError: a spec is wrong, or there is no such table.
    """
    load_catalog(settings.tables).spec(table)
    return refused_rows(table, LakehousePaths(settings.root), intervals, reason)


def refusal_table(found: Mapping[str, Iterable[Refusal]]) -> Table:
    """A row a reason, the tables one after the other."""
    table = new_table("table", "reason", "rows", "first interval", "last interval", "batch", numbers=("rows", "batch"))
    for name, reasons in found.items():
        for one in reasons:
            days = (f"{one.first:%Y-%m-%d %H:%M}", f"{one.last:%Y-%m-%d %H:%M}")
            table.add_row(name, Text(one.reason), count(one.rows), *days, count(one.batch_seq))
        table.add_section()
    return table


def row_table(rows: Iterable[RefusedRow]) -> Table:
    """A row a record, whole: what a person needs to mend it at its source."""
    table = new_table("batch", "from", "position", "reasons", "record", numbers=("batch", "position"))
    for row in rows:
        reasons = Text("\n".join(row.reasons))
        table.add_row(count(row.batch_seq), Text(row.source or MISSING), count(row.position), reasons, Text(row.record))
    return table
