"""`lakehouse lineage`: where a table or a column comes from, who reads it, and what a change of the column breaks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from rich.console import Group, RenderableType
from rich.text import Text

from millrace.catalog import Catalog
from millrace.cli.views import new_table
from millrace.contracts.counted import counted
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.errors import UnknownNameError
from millrace.overview.described_columns import column_names
from millrace.overview.lineage.breakage import BrokenPlace, broken_places, stopped_tables
from millrace.overview.lineage.chains import ColumnChains, Step
from millrace.specs.problem import did_you_mean

_HEADINGS = {"upstream": "Comes from", "downstream": "Goes to", "breaks": "Breaks if it is renamed or removed"}
_NOTHING = {"upstream": "no column or table", "downstream": "no column or table", "breaks": "no place in a spec"}


@dataclass(frozen=True)
class LineageItem:
    """A table or a column up- or downstream, or a place that a change breaks.

    Attributes:
        relation: `upstream`, `downstream` or `breaks`.
        steps: how many steps it is away, from 1; 0 for a place.
        table: its table; for what a source delivers, the files or topics.
        column: its column, with the part that is read; empty for the rows of the table, for a table, and for a place.
        how: what happens to the column, or what it is used for.
        text: the Spark SQL, the cast or the rule.
        key: the key path of a place in a spec.
        line: the line of the place, from 1; 0 for a table or a column.
    """

    relation: str
    steps: int
    table: str
    column: str = ""
    how: str = ""
    text: str = ""
    key: str = ""
    line: int = 0


def lineage_items(name: str, catalog: Catalog) -> list[LineageItem]:
    """Return what belongs to `<layer>.<table>` or `<layer>.<table>.<column>`: upstream, downstream, what breaks.

    Raises:
        UnknownNameError: there is no such table or column.
        SpecsRefusedError: the spec of the table is wrong.
    """
    layer, _, rest = name.partition(".")
    short, _, column = rest.partition(".")
    spec = catalog.spec(f"{layer}.{short}")
    if not column:
        found = {
            "upstream": catalog.graph.upstream(spec.table),
            "downstream": catalog.graph.downstream(spec.table),
        }
        return [
            LineageItem(relation, steps, table)
            for relation, tables in found.items()
            for table, steps in tables.items()
            if steps
        ]
    if column not in (columns := column_names(spec)):
        raise UnknownNameError(f"{spec.table} has no column {column!r}", did_you_mean(column, columns))
    chains = ColumnChains(catalog.specs)
    return [
        *_columns("upstream", chains.comes_from(spec.table, column), catalog, spec.table),
        *_columns("downstream", chains.goes_to(spec.table, column), catalog, spec.table),
        *(_place(place) for place in broken_places(spec.table, column, catalog)),
    ]


def lineage_view(items: Iterable[LineageItem], *, of_column: bool) -> Group:
    """Return the same for people: a heading and a table for each relation."""
    found = {relation: list(group) for relation, group in groupby(items, lambda item: item.relation)}
    parts: list[RenderableType] = []
    for relation, heading in _HEADINGS.items():
        if relation == "breaks" and not of_column:
            continue
        parts.append(Text(heading, style="bold"))
        if relation not in found:
            parts += [Text(f"  {_NOTHING[relation]}"), Text()]
        elif relation == "breaks":
            table = new_table("table", "used as", "place", "line", "text", numbers=("line",))
            for item in found[relation]:
                table.add_row(item.table, item.how, Text(item.key), str(item.line), Text(item.text))
            parts.append(table)
        else:
            table = new_table("steps", "table", "column", "how", "SQL", numbers=("steps",))
            for item in found[relation]:
                column = item.column or ("its rows" if item.how else "")
                table.add_row(str(item.steps), Text(item.table), column, item.how, Text(item.text))
            parts.append(table)
    return Group(*parts)


def lineage_remark(items: Iterable[LineageItem], catalog: Catalog) -> str:
    """Return which tables would not be run after a change of the column."""
    broken = [item.table for item in items if item.relation == "breaks"]
    if not broken:
        return "No spec names it. Queries outside of Millrace are not known here."
    places, specs = counted(len(broken), "place"), counted(len(set(broken)), "spec")
    stopped = ", ".join(stopped_tables(broken, catalog))
    return f"{places} in {specs} must change with it; until then these tables are not run: {stopped}"


def _columns(
    relation: str, steps: Iterable[Step], catalog: Catalog, above: str, number: int = 1
) -> Iterator[LineageItem]:
    for step in steps:
        yield LineageItem(relation, number, step.table or _delivery(above, catalog), step.path, step.how, step.text)
        yield from _columns(relation, step.steps, catalog, step.table, number + 1)


def _delivery(table: str, catalog: Catalog) -> str:
    """Return the files or topics of a bronze table."""
    spec = catalog.specs[table]
    return spec.source.label if isinstance(spec, BronzeSpec) else ""


def _place(place: BrokenPlace) -> LineageItem:
    problem = place.problem
    text = "" if problem.value is None else str(problem.value)
    return LineageItem("breaks", 0, place.table, how=place.kind, text=text, key=problem.key, line=problem.line)
