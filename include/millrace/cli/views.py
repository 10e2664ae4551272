"""The tables that the CLI prints, which fit the terminal."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, cast

from rich import box
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from millrace.contracts.counted import in_bytes
from millrace.specs.problem import SpecProblem, brief

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from millrace.cli.facts import TableFacts


MISSING = "-"


def new_table(*columns: str, numbers: Sequence[str] = ()) -> Table:
    """Return an empty table; the columns in `numbers` are aligned right."""
    table = FittingTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return table


def problem_table(problems: Iterable[SpecProblem]) -> Group:
    """Return all problems of all spec files: the name of each file, and a table of its problems."""
    parts = list[RenderableType]()
    for file, of_file in groupby(problems, key=lambda problem: problem.file):
        table = new_table("line", "key", "problem", "fix", numbers=("line",))
        for problem in of_file:
            value = "" if problem.value is None else f": {brief(problem.value, 40)}"
            table.add_row(str(problem.line), Text(problem.key), Text(f"{problem.message}{value}"), Text(problem.fix))
        parts += [Text(str(file), style="bold", overflow="fold"), table]
    return Group(*parts)


def facts_table(facts: Iterable[TableFacts], invalid: Container[str] = ()) -> Table:
    """Return the facts of all tables; tables whose spec is wrong are marked."""
    heads = ("rows", "size", "version", "certified", "quarantined", "rescued", "deleted")
    table = new_table("table", *heads, "", numbers=heads)
    for item in facts:
        parts = ["its spec is wrong" if item.table in invalid else "", item.damage or _certification(item)]
        remark = Text("; ".join(part for part in parts if part), style="red" if item.damage else "")
        numbers = (item.version, item.certified_version, item.quarantined, item.rescued, item.deleted)
        table.add_row(item.table, count(item.rows), size(item.bytes), *map(count, numbers), remark)
    return table


def count(number: int | None) -> str:
    """Return a count with thousands separators.

    >>> count(336776)
    '336,776'
    """
    return MISSING if number is None else f"{number:,}"


def size(byte_count: int | None) -> str:
    """Return a number of bytes in a fitting unit.

    >>> size(3_400_000)
    '3.4 MB'
    """
    return MISSING if byte_count is None else in_bytes(byte_count)


def _certification(facts: TableFacts) -> str:
    if facts.version is None:
        return "not built yet"
    if facts.certified_version is None:
        return "no version is certified"
    newest = "" if facts.certified_version == facts.version else "newest version is not certified"
    return "; ".join(part for part in (newest, str(facts.override) if facts.override else "") if part)


_EMPTY = ("", "-")
_INDENT = _GAP = "   "
_LEAST_TEXT = 20
"""The least width of a column of longer texts."""


class FittingTable(Table):
    """A table of rich that breaks no word, and no number, while the columns fit side by side.

    A console that is too narrow for them shows each row as a paragraph: the first cell, with its heading if it is a
    number, and below it the headings and values of the other cells that are not empty. Only a word that is longer than
    a line is folded there. Cells are texts.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table with the widths of its columns, or the paragraphs."""
        measures = [_measure(column, console, options) for column in self.columns]
        room = options.max_width - len(_GAP) * len(measures) + 1
        if sum(measure.minimum for measure in measures) > room:
            yield from self._paragraphs(options.max_width)
            return
        for column, width in zip(self.columns, _widths(measures, room), strict=True):
            column.width = width
        yield from super().__rich_console__(console, options)

    def _paragraphs(self, width: int) -> Iterator[RenderableType]:
        headings = [_text(column.header) for column in self.columns]
        for first, *others in zip(*(column.cells for column in self.columns), strict=True):
            label = f"{headings[0].plain} " if self.columns[0].justify == "right" else ""
            yield Text.assemble((label, "dim"), _text(first), style="bold", overflow="fold")
            named = [
                Text.assemble((f"{heading.plain} " if heading else "", "dim"), _text(cell), overflow="fold")
                for heading, cell in zip(headings[1:], others, strict=True)
                if _text(cell).plain not in _EMPTY
            ]
            for line in _lines(named, width - len(_INDENT)):
                yield Padding(line, (0, 0, 0, len(_INDENT)))


def _measure(column: Column, console: Console, options: ConsoleOptions) -> Measurement:
    """Return the widths of a column: the least at which it is read with ease, and that at which no cell is wrapped."""
    cells = [Measurement.get(console, options, cell) for cell in (column.header, *column.cells)]
    most = max(cell.maximum for cell in cells)
    least = max(_LEAST_TEXT, *(cell.minimum for cell in cells))
    return Measurement(most if column.justify == "right" else min(least, most), most)


def _widths(measures: Sequence[Measurement], room: int) -> list[int]:
    """Return the width of each column; the widest columns that can wrap give way until all fit into the room.

    >>> _widths([Measurement(8, 8), Measurement(9, 40), Measurement(5, 20)], 40)
    [8, 16, 16]
    """
    widths = [measure.maximum for measure in measures]
    for _ in range(sum(widths) - room):
        _, widest = max((width, number) for number, width in enumerate(widths) if width > measures[number].minimum)
        widths[widest] -= 1
    return widths


def _lines(parts: Sequence[Text], width: int) -> Iterator[Text]:
    """Yield the parts side by side, as many as fit into a line; a longer part has lines of its own."""
    line = Text()
    for part in parts:
        if line and cell_len(line.plain) + len(_GAP) + cell_len(part.plain) > width:
            yield line
            line = Text()
        line = Text.assemble(line, _GAP, part) if line else part
    if line:
        yield line


def _text(cell: RenderableType) -> Text:
    return cell if isinstance(cell, Text) else Text(cast("str", cell))
