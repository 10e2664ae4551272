"""`lakehouse columns`: list the fields of records for which no column is declared, and decide about them."""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Mapping, Sequence

import typer
from rich.table import Table
from rich.text import Text

from include.cli.catalog import command_catalog
from include.cli.views import new_table
from include.contracts.spec.table_spec import BronzeSpec
from include.contracts.time_format import SECOND
from include.control.ledger.new_columns import ColumnState, NewColumn, NewColumns
from include.control.quarantine.rescued import rescued_fields
from include.errors import UnknownNameError
from include.settings import Settings
from include.specs.problem import did_you_mean

_BY_HAND = "lakehouse columns"
_MEANS = {
    ColumnState.PROPOSED: ("yellow", "kept in _rescued until somebody decides"),
    ColumnState.ASKED: ("yellow", "kept in _rescued; the DAG column_approvals asks"),
    ColumnState.APPROVED: ("green", "a column, as text, from the next batch on"),
    ColumnState.REFUSED: ("red", "kept in _rescued; --approve or --ask changes that"),
}


def decide_columns(
    table: str, approved: Sequence[str], refused: Sequence[str], again: Sequence[str], settings: Settings
) -> list[NewColumn]:
    """Record what a person decided, and return all new columns of the table.

    Raises:
        SpecError: a spec is wrong, or there is no such bronze table, or it does not evolve.
        typer.BadParameter: no record ever had such a field, or it is a column now.
    """
    _require_evolving(table, settings)
    columns = NewColumns(settings.paths)
    states = {column.name: column.state for column in columns.of(table)}
    _require_no_column(table, [*approved, *refused, *again], [*refused, *again], states)
    decisions = {ColumnState.APPROVED: approved, ColumnState.REFUSED: refused, ColumnState.PROPOSED: again}
    for state, names in decisions.items():
        columns.record(state, table, names, run_id=_BY_HAND, said_by=getpass.getuser())
    return columns.of(table)


def column_table(table: str, columns: Iterable[NewColumn], settings: Settings) -> Table:
    """Return one row per column: its state, since when, who decided, and its values in `_rescued`."""
    every = list(columns)
    rescued = rescued_fields(settings.paths.table(table), [column.name for column in every])
    shown = new_table("column", "state", "since", "said by", "what it means", "in _rescued")
    for column in every:
        colour, meaning = _MEANS[column.state]
        since, said_by = f"{column.since:{SECOND}}", column.said_by or column.run_id
        state = Text(column.state, style=colour)
        shown.add_row(column.name, state, since, said_by, meaning, Text(str(rescued[column.name])))
    return shown


def _require_no_column(
    table: str, names: Sequence[str], not_approved: Sequence[str], states: Mapping[str, ColumnState]
) -> None:
    for name in names:
        if name not in states:
            msg = f"no record of {table} has a new field {name!r}: {did_you_mean(name, list(states))}"
            raise typer.BadParameter(msg)
    for name in not_approved:
        if states[name] is ColumnState.APPROVED:
            msg = f"{name!r} was approved: it is a column of {table}, or becomes one, and no run ever removes a column"
            raise typer.BadParameter(msg)


def _require_evolving(table: str, settings: Settings) -> None:
    spec = command_catalog(settings.tables).spec(table)
    if not isinstance(spec, BronzeSpec) or spec.on_drift != "evolve":
        raise UnknownNameError(
            f"{table} gets no new columns", "That is for bronze tables with on_drift: evolve in their spec."
        )
