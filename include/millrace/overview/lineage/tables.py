"""The tables from which a table gets its rows, and the tables that get rows from it, with how far each has read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from millrace.control.log.batch import BatchSources
from millrace.overview.tables.table_overview import TableOverview
from millrace.specs.table_graph import TableGraph


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
    return _relatives(_graph(tables).upstream(table), tables)[::-1]


def downstream(table: str, tables: Mapping[str, TableOverview]) -> list[Relative]:
    """Return the tables that need a table, the nearest first."""
    return _relatives(_graph(tables).downstream(table), tables)


def _graph(tables: Mapping[str, TableOverview]) -> TableGraph:
    """Return which tables read which, also those with wrong specs, as far as these say so."""
    return TableGraph.of(table.spec for table in tables.values())


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


def _relatives(steps: Mapping[str, int], tables: Mapping[str, TableOverview]) -> list[Relative]:
    """Return the tables with a spec among those that some steps lead to."""
    return [
        Relative(tables[name], number, source_reads(tables[name], tables))
        for name, number in steps.items()
        if number and name in tables
    ]
