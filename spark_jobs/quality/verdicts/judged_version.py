"""The version that is judged, and what it can be held against."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame

IN_TABLE, APPLIED = "in_table", "applied"
"""The facts of a version that later ones are held against: its rows, and how many of them its run has applied."""


@dataclass(frozen=True)
class JudgedVersion:
    """One version of a table with its past and the tables beside it, none of it read from a clock.

    Attributes:
        table: the table.
        version: the version that is judged.
        interval_end: the end of the interval of the batch that made it.
        committed_at: when that batch was committed.
        facts: `in_table` and `applied` of this version, as far as they are known.
        past: the same of each certified version before it, the newest first.
        certified: the last certified version before it; None where there is none.
        others: another table -> its certified version; None where it has none.
        sources: source table -> the version that the batch has read up to.
        read: the rows of an exact version of a table.
        rows_of: how many those are.
        columns_of: its columns and their types.
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

    def lacks(self, *columns: str) -> str:
        """Why there is no past of these columns that the version could be held against; empty where there is one."""
        if self.certified is None:
            return "there is no certified version before this one"
        known = self.columns_of(self.table, self.certified)
        missing = [column for column in columns if column not in known]
        return f"{self.last_certified} has no column {missing[0]}" if missing else ""

    @property
    def last_certified(self) -> str:
        """The last certified version before this one, as it is told."""
        return f"{self.table} version {self.certified}"
