"""The tables that the CLI prints, as pure functions."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from millrace.cli.listings.fitting_table import FittingTable
from millrace.contracts.counted import in_bytes
from millrace.specs.problem import SpecProblem, brief

if TYPE_CHECKING:
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
