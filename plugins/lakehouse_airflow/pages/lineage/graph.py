"""The tables by layer, with lines from each table to those that read it.

A table reads tables of the layer before it, and above bronze also of its own. So the layers are columns, and only the
order within them has to be found: a table stands near its sources, and below those of its own layer that it reads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from millrace.contracts.spec.values import LAYERS
from millrace.overview.tables.table_overview import TableOverview
from millrace.specs.table_graph import TableGraph

MOST_BOXES = 50
"""The tables that a layer shows; a list of more is not read as a picture."""

_ROW = 10
"""The height of a box in the units of the lines."""


@dataclass(frozen=True)
class Graph:
    """What a picture of tables shows.

    Attributes:
        layers: layer -> its tables, from top to bottom.
        lines: layer -> the lines from its tables to those of the next layer, and of the same one above bronze, as paths
            of an SVG that is 100 wide.
        left_out: layer -> the number of its tables that are not shown.
    """

    layers: Mapping[str, Sequence[TableOverview]]
    lines: Mapping[str, Sequence[str]]
    left_out: Mapping[str, int]

    @property
    def rows(self) -> int:
        """The number of tables of the longest layer."""
        return max(map(len, self.layers.values()))

    @property
    def height(self) -> int:
        """The height of the SVGs of lines."""
        return _ROW * self.rows


def graph_of(tables: Sequence[TableOverview]) -> Graph:
    """Return the picture of these tables, without those in no layer, whose files are in no table's place."""
    layers = {layer: [table for table in tables if table.spec.layer == layer] for layer in LAYERS}
    graph = TableGraph.of(table.spec for table in tables)
    sources, readers, steps = graph.sources, graph.readers, graph.build_steps()
    bronze, silver, gold = LAYERS
    for layer, beside, neighbours in ((silver, bronze, sources), (gold, silver, sources), (bronze, silver, readers)):
        near = _near(layers[layer], neighbours, _places(layers[beside]))
        layers[layer] = sorted(near, key=lambda table: steps[table.table])
    shown = {layer: of_layer[:MOST_BOXES] for layer, of_layer in layers.items()}
    lines = {
        layer: [
            _line(row, places[reader], 0 if following == layer else 100)
            for following in followings
            for places in [_places(shown[following])]
            for row, table in enumerate(shown[layer])
            for reader in readers.get(table.table, ())
            if reader in places
        ]
        for layer, followings in ((bronze, (silver,)), (silver, (gold, silver)), (gold, (gold,)))
    }
    return Graph(shown, lines, {layer: len(layers[layer]) - len(shown[layer]) for layer in LAYERS})


def _places(tables: Sequence[TableOverview]) -> dict[str, int]:
    return {table.table: row for row, table in enumerate(tables)}


def _near(
    tables: Sequence[TableOverview], neighbours: Mapping[str, Collection[str]], places: Mapping[str, int]
) -> list[TableOverview]:
    """Return the tables, each as near as can be to its neighbours; those without come last."""

    def row(table: TableOverview) -> float:
        rows = [places[name] for name in neighbours.get(table.table, ()) if name in places]
        return fmean(rows) if rows else len(places)

    return sorted(tables, key=row)


def _line(start: int, end: int, end_x: int) -> str:
    """Return the path of a line from the left to `end_x`; a line that ends on the left, too, is an arc.

    >>> _line(0, 2, 100)
    'M0 5C50 5 50 25 100 25'
    """
    from_y, to_y = (row * _ROW + _ROW // 2 for row in (start, end))
    bend = 50 if end_x else 90
    return f"M0 {from_y}C{bend} {from_y} {bend} {to_y} {end_x} {to_y}"
