"""`lakehouse columns`: list the fields of records without a declared column, and decide about them."""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rich.table import Table
from rich.text import Text

from millrace.cli.catalog import command_catalog
from millrace.cli.views import new_table
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.contracts.time_format import SECOND
from millrace.control.ledger.new_columns import ColumnState, NewColumn, NewColumns
from millrace.control.quarantine.rescued import RescuedField, rescued_fields
from millrace.errors import UnknownNameError
from millrace.settings import Settings
from millrace.specs.problem import did_you_mean

_BY_HAND = "lakehouse columns"
_MEANINGS = {
    ColumnState.PROPOSED: ("yellow", "kept in _rescued until somebody decides"),
    ColumnState.ASKED: ("yellow", "kept in _rescued; the DAG column_approvals asks"),
    ColumnState.APPROVED: ("green", "a column, as text, from the next batch on"),
    ColumnState.REFUSED: ("red", "kept in _rescued; --approve or --ask changes that"),
}


@dataclass(frozen=True)
class ListedColumn(NewColumn):
    """A field without a declared column, with its values in `_rescued` of the newest version."""

    rescued: RescuedField


def decide_columns(
    table: str, approved: Sequence[str], refused: Sequence[str], again: Sequence[str], settings: Settings
) -> list[NewColumn]:
    """Record what a person decided, and return all new columns of the table.

    Raises:
        SpecError: a spec is wrong, or there is no such bronze table, or it does not evolve.
        UnknownNameError: no record ever had such a field, or it is a column now.
    """
    spec = command_catalog(settings.tables).spec(table)
    if not isinstance(spec, BronzeSpec) or spec.on_drift != "evolve":
        raise UnknownNameError(
            f"{table} gets no new columns", "That is for bronze tables with on_drift: evolve in their spec."
        )
    columns = NewColumns(settings.paths)
    states = {column.name: column.state for column in columns.of(table)}
    for name in (*approved, *refused, *again):
        if name not in states:
            hint = did_you_mean(name, list(states))
            raise UnknownNameError(f"no record of {table} has a new field {name!r}", hint)
        if states[name] is ColumnState.APPROVED and name in (*refused, *again):
            raise UnknownNameError(
                f"{name!r} was approved: it is a column of {table}, or becomes a column", "No run removes columns."
            )
    decisions = {ColumnState.APPROVED: approved, ColumnState.REFUSED: refused, ColumnState.PROPOSED: again}
    for state, names in decisions.items():
        columns.record(state, table, names, run_id=_BY_HAND, said_by=getpass.getuser())
    return columns.of(table)


def with_values(table: str, columns: Sequence[NewColumn], settings: Settings) -> list[ListedColumn]:
    """Return the columns with their values in `_rescued`; beside a restricted column, with their numbers alone."""
    spec = command_catalog(settings.tables).spec(table)
    rescued = rescued_fields(settings.paths.table(table), [column.name for column in columns])
    if isinstance(spec, BronzeSpec) and spec.has_restricted_columns:
        rescued = {name: replace(field, samples=()) for name, field in rescued.items()}
    return [ListedColumn(**vars(column), rescued=rescued[column.name]) for column in columns]


def column_table(columns: Iterable[ListedColumn]) -> Table:
    """Return one row per column: its state, since when, who decided, and its values in `_rescued`."""
    shown = new_table("column", "state", "since", "by", "meaning", "in _rescued")
    for column in columns:
        colour, meaning = _MEANINGS[column.state]
        state, since = Text(column.state, style=colour), f"{column.since:{SECOND}}"
        by = column.said_by or column.run_id
        shown.add_row(column.name, state, since, by, meaning, Text(str(column.rescued)))
    return shown
