"""The version that a gate checks, and what it can be compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame

IN_TABLE, APPLIED = "in_table", "applied"
"""The facts that later versions are compared with: the version's rows, and the rows that its run applied."""


@dataclass(frozen=True)
class ComparableVersion:
    """One version of a table, its past, and the tables that rules compare it with; nothing is read from a clock.

    Attributes:
        table: the table.
        version: the version that the gate checks.
        interval_end: the end of the interval of the batch that made it.
        committed_at: when that batch was committed.
        facts: `in_table` and `applied` of this version, where they are known.
        past: yields the facts of each certified version before it, newest first.
        certified: the last certified version before it, or None.
        others: another table -> its certified version, or None.
        sources: source table -> the last version that the batch read.
        read: returns the rows of an exact version of a table.
        rows_of: returns the number of its rows.
        columns_of: returns its columns and their types.
    """

    table: str
    version: int
    interval_end: datetime
    committed_at: datetime
    facts: Mapping[str, int]
    past: Callable[[], Iterator[Mapping[str, int]]]
    certified: int | None
    others: Mapping[str, int | None]
    sources: Mapping[str, int]
    read: Callable[[str, int], DataFrame]
    rows_of: Callable[[str, int], int]
    columns_of: Callable[[str, int], Mapping[str, str]]

    def missing_past(self, *columns: str) -> str:
        """Return why the last certified version cannot be compared by these columns; empty if it can."""
        if self.certified is None:
            return "there is no certified version before this one"
        existing = self.columns_of(self.table, self.certified)
        missing = [column for column in columns if column not in existing]
        return f"{self.last_certified} has no column {missing[0]}" if missing else ""

    @property
    def last_certified(self) -> str:
        """The last certified version before this one, as messages name it."""
        return f"{self.table} version {self.certified}"
