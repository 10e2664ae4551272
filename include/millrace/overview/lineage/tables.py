"""The tables from which a table gets its rows, and the tables that get rows from it, with how far each has read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from millrace.control.log.batch import BatchSources
from millrace.overview.tables.table_overview import TableOverview


@dataclass(frozen=True)
class SourceRead:
    """How far a table has read one of its sources.

    Attributes:
        source: the source.
        upto: the version of the source up to which it has read; None if it has read nothing, or another table.
        certified: the version that it may read; None if there is none.
    """

    source: str
    upto: int | None
    certified: int | None

    @property
    def is_behind(self) -> bool:
        """Whether the next run has something to read."""
        return self.certified is not None and (self.upto is None or self.upto < self.certified)


@dataclass(frozen=True)
class Relative:
    """A table upstream or downstream of another one.

    Attributes:
        table: the table.
        steps: how many tables it is away, from 1.
        reads: how far it has read each of its own sources.
    """

    table: TableOverview
    steps: int
    reads: tuple[SourceRead, ...]


def upstream(table: str, tables: Mapping[str, TableOverview]) -> list[Relative]:
    """Return the tables that a table needs, the farthest first."""
    sources = {name: each.spec.upstream_tables for name, each in tables.items()}
    return _relatives(table, sources, tables)[::-1]


def downstream(table: str, tables: Mapping[str, TableOverview]) -> list[Relative]:
    """Return the tables that need a table, the nearest first."""
    readers = readers_of({name: each.spec.upstream_tables for name, each in tables.items()})
    return _relatives(table, readers, tables)


def readers_of(sources: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return table -> the tables that read it, from table -> the tables that it reads.

    >>> readers_of({"silver.a": ["bronze.a"], "silver.b": ["bronze.a"]})
    {'bronze.a': ['silver.a', 'silver.b']}
    """
    readers: dict[str, list[str]] = {}
    for table, of_table in sources.items():
        for source in dict.fromkeys(of_table):
            readers.setdefault(source, []).append(table)
    return readers


def steps_along(table: str, edges: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Return the tables to which edges lead, the nearest first, each with the number of steps to it, from 1.

    >>> steps_along("gold.a", {"gold.a": ["silver.a"], "silver.a": ["bronze.a"]})
    {'silver.a': 1, 'bronze.a': 2}
    """
    steps = {table: 0}
    queue = [table]
    for at in queue:
        for name in edges.get(at, ()):
            if name not in steps:
                steps[name] = steps[at] + 1
                queue.append(name)
    return {name: steps[name] for name in queue[1:]}


def source_reads(table: TableOverview, tables: Mapping[str, TableOverview]) -> tuple[SourceRead, ...]:
    """Return how far a table has read each of its sources."""
    sources = table.streams.sources if table.streams else BatchSources()
    ranges, ids = sources.ranges, sources.source_ids
    reads = []
    for source in table.spec.source_tables:
        known = tables.get(source)
        is_same = known is not None and ids.get(source) == known.table_id
        upto = ranges[source][1] if source in ranges and is_same else None
        reads.append(SourceRead(source, upto, known.certified if known else None))
    return tuple(reads)


def _relatives(table: str, edges: Mapping[str, Iterable[str]], tables: Mapping[str, TableOverview]) -> list[Relative]:
    """Return the tables with a spec that edges lead to, once each, by the number of steps."""
    steps = steps_along(table, edges)
    return [Relative(tables[name], steps[name], source_reads(tables[name], tables)) for name in steps if name in tables]
