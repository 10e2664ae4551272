"""From which columns a column comes, up to what a source delivers, and to which columns and rows it goes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from millrace.contracts.spec.table_spec import AnySpec
from millrace.overview.lineage.origins import Origin, origins_of_columns, origins_of_rows
from millrace.specs.table_graph import TableGraph

ROWS = ""
"""In place of a column: all rows of a table, which a column decides about."""


_HOW = {
    "IDENTITY": "as it is",
    "TRANSFORMATION": "computed",
    "AGGREGATION": "aggregated",
    "CONDITIONAL": "decides which value",
    "WINDOW": "decides the window",
    "FILTER": "decides which rows count",
    "JOIN": "joins or merges rows",
    "SORT": "orders events",
    "GROUP_BY": "groups rows",
}
"""Word of OpenLineage -> what happens, for people."""


@dataclass(frozen=True)
class Step:
    """A column before or after another one, with those before or after it.

    Attributes:
        table: its table; `DELIVERED` for what a source system delivers.
        column: its name; `ROWS` where not a column depends on the other one, but which rows there are.
        uses: what happens from the one to the other, in the words of OpenLineage, such as `AGGREGATION`.
        text: the Spark SQL, the cast or the rule; empty for a column that stays as it is.
        steps: the same of this column.
        path: its name, with the part of its value that is read.
    """

    table: str
    column: str
    uses: tuple[str, ...]
    text: str
    steps: tuple[Step, ...]
    path: str

    @property
    def how(self) -> str:
        """What happens from the one to the other, for people."""
        return ", ".join(_HOW[use] for use in self.uses)

    @property
    def all_steps(self) -> Iterator[Step]:
        """This step, and all behind it."""
        yield self
        for step in self.steps:
            yield from step.all_steps


class ColumnChains:
    """Follows columns through sound specs; it reads the SQL of a table once, and only of tables that it reaches."""

    def __init__(self, specs: Mapping[str, AnySpec]) -> None:
        self._specs = specs
        self._graph = TableGraph({spec.table: spec.source_tables for spec in specs.values()})
        self._of_columns: dict[str, Mapping[str, Iterable[Origin]]] = {}

    def comes_from(self, table: str, column: str) -> tuple[Step, ...]:
        """Return the columns from which a column comes; none for a count of rows, or for what a source delivers."""
        origins = _by_column((each.table, each.path, each) for each in self._origins(table).get(column, ()))
        return tuple(
            Step(of, every[0].field, _uses(every), _text(every), self.comes_from(of, every[0].field), path)
            for (of, path), every in origins.items()
        )

    def goes_to(self, table: str, column: str) -> tuple[Step, ...]:
        """Return the columns that come from a column, and the tables about whose rows it decides."""
        found = _by_column(
            (reader, name, origin)
            for reader in (table, *self._graph.readers.get(table, ()))
            for name, origins in self._origins(reader).items()
            for origin in origins
            if (origin.table, origin.field) == (table, column)
        )
        return tuple(
            Step(*place, _uses(every), _text(every), self.goes_to(*place) if place[1] != ROWS else (), place[1])
            for place, every in found.items()
        )

    def _origins(self, table: str) -> Mapping[str, Iterable[Origin]]:
        """Return column -> what it comes from; `ROWS` -> what decides about the rows."""
        if table not in self._of_columns:
            spec = self._specs.get(table)
            found = {**origins_of_columns(spec, self._specs), ROWS: origins_of_rows(spec, self._specs)} if spec else {}
            self._of_columns[table] = found
        return self._of_columns[table]


def _by_column(places: Iterable[tuple[str, str, Origin]]) -> dict[tuple[str, str], list[Origin]]:
    found: dict[tuple[str, str], list[Origin]] = {}
    for table, column, origin in places:
        found.setdefault((table, column), []).append(origin)
    return found


def _uses(origins: Iterable[Origin]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(origin.subtype) for origin in origins))


def _text(origins: Iterable[Origin]) -> str:
    """Return the SQL; of rules, joins and filters there may be several."""
    return "; ".join(dict.fromkeys(origin.text for origin in origins if origin.text))
