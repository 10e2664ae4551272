"""Which tables read which: the questions that are asked of that, and their answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Protocol


class ReadingTable(Protocol):
    """A sound or a wrong spec: its table, and the tables that it reads or refers to."""

    @property
    def table(self) -> str:
        """The table."""

    @property
    def upstream_tables(self) -> tuple[str, ...]:
        """The tables that must be built before it."""


class TableGraph:
    """The tables of a lakehouse, or some of them.

    Args:
        sources: table -> the tables that it reads, also those that are no key here.
    """

    def __init__(self, sources: Mapping[str, Collection[str]]) -> None:
        self.sources = sources

    @classmethod
    def of(cls, specs: Iterable[ReadingTable]) -> TableGraph:
        """Return the graph of some specs."""
        return cls({spec.table: spec.upstream_tables for spec in specs})

    @cached_property
    def readers(self) -> Mapping[str, list[str]]:
        """Table -> the tables that read it.

        >>> TableGraph({"silver.a": ["bronze.a"], "silver.b": ["bronze.a"]}).readers
        {'bronze.a': ['silver.a', 'silver.b']}
        """
        readers: dict[str, list[str]] = {}
        for table, sources in self.sources.items():
            for source in dict.fromkeys(sources):
                readers.setdefault(source, []).append(table)
        return readers

    def upstream(self, *tables: str) -> dict[str, int]:
        """Return some tables and all that they read, directly or not, the nearest first, each with its steps from 0.

        >>> TableGraph({"gold.b": ["gold.a"], "gold.a": ["silver.s"]}).upstream("gold.b")
        {'gold.b': 0, 'gold.a': 1, 'silver.s': 2}
        """
        return _steps(tables, self.sources)

    def downstream(self, *tables: str) -> dict[str, int]:
        """Return some tables and all that read them, directly or not, the nearest first, each with its steps from 0.

        >>> TableGraph({"gold.b": ["gold.a"], "gold.a": ["silver.s"]}).downstream("silver.s")
        {'silver.s': 0, 'gold.a': 1, 'gold.b': 2}
        """
        return _steps(tables, self.readers)

    def with_readers_next(self, tables: Iterable[str]) -> list[str]:
        """Return some tables in an order in which those that read a table come soon after it.

        >>> TableGraph({"silver.a": ["bronze.a"], "silver.b": ["bronze.b"]}).with_readers_next(
        ...     ["bronze.a", "bronze.b", "silver.a", "silver.b"])
        ['bronze.a', 'silver.a', 'bronze.b', 'silver.b']
        """
        wanted = dict.fromkeys(tables)
        return list(dict.fromkeys(name for table in wanted for name in self.downstream(table) if name in wanted))

    def cycle(self) -> list[str]:
        """Return the tables of one cycle, each read by the next, first and last the same; empty without a cycle."""
        try:
            TopologicalSorter(self.sources).prepare()
        except CycleError as error:
            return list(error.args[1])
        return []

    def build_steps(self) -> dict[str, int]:
        """Return table -> how many tables of its layer are built before it, one after the other.

        >>> TableGraph({"gold.a": ["silver.s"], "gold.b": ["gold.a", "silver.s"]}).build_steps()
        {'silver.s': 0, 'gold.a': 0, 'gold.b': 1}
        """
        steps: dict[str, int] = {}
        for table in TopologicalSorter(self.sources).static_order():
            layer = table.partition(".")[0]
            beside = (source for source in self.sources.get(table, ()) if source.partition(".")[0] == layer)
            steps[table] = max((steps[source] + 1 for source in beside), default=0)
        return steps


def _steps(tables: Iterable[str], edges: Mapping[str, Collection[str]]) -> dict[str, int]:
    """Return the tables to which edges lead from some, and these, with the number of steps to each."""
    steps = dict.fromkeys(tables, 0)
    queue = list(steps)
    for at in queue:  # grows while it is read
        for name in edges.get(at, ()):
            if name not in steps:
                steps[name] = steps[at] + 1
                queue.append(name)
    return steps
