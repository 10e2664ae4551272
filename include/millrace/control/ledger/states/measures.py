"""Rows and bytes of a table's newest version: a part of its state, so that listings open no table (ADR 25)."""

from __future__ import annotations

from collections.abc import Iterable

from deltalake.exceptions import TableNotFoundError

from millrace.contracts.interval import Instant
from millrace.contracts.lake_path import LakePath
from millrace.control.ledger.states.table_state import StatePart
from millrace.control.log.delta_log import commit_mark
from millrace.control.log.followed_tables import newest_table, table_at


class Measures(StatePart):
    """The size of a table.

    Attributes:
        version: the version.
        mark: the digest of its commit.
        rows: the number of rows; None if the log lacks the count of a file.
        size: the bytes of its data files.
        files: the number of its data files; None in a state that an earlier Millrace wrote.
        partitions: the number of folders with data files.
        rescued: the number of rows with a value in `_rescued`; None if the log lacks the count of a file.
        created: since when the table with this id exists; None if Delta, or an earlier Millrace, has not recorded it.
    """

    version: int
    mark: str
    rows: int | None
    size: int
    files: int | None = None
    partitions: int = 1
    rescued: int | None = None
    created: Instant | None = None

    def is_newest(self, table: LakePath) -> bool:
        """Whether this version is the newest version of the table at the path."""
        return commit_mark(table, self.version) == self.mark != "" and not commit_mark(table, self.version + 1)


def measure(table: LakePath) -> Measures | None:
    """Measure the newest version by its log; None if there is no table."""
    try:
        newest = newest_table(table)
    except TableNotFoundError:
        return None
    rows = _sum(file.rows for file in newest.files.values())
    unset = _sum(file.unset for file in newest.files.values())
    return Measures(
        table_id=newest.table_id,
        version=newest.version,
        mark=newest.mark,
        rows=rows,
        size=sum(file.size for file in newest.files.values()),
        files=len(newest.files),
        partitions=len({name.rpartition("/")[0] for name in newest.files}),
        rescued=None if rows is None or unset is None else rows - unset,
        created=newest.created,
    )


def table_rows(table: LakePath, version: int) -> int:
    """Return the number of rows of a version, from the statistics of its data files."""
    return sum(file.rows or 0 for file in table_at(table, version).files.values())


def newer_measures(stored: Measures | None, now: Measures | None) -> Measures | None:
    """Return the stored measures if they are of the same table and of a later version, otherwise the new ones."""
    is_later = stored and now and stored.table_id == now.table_id and stored.version > now.version
    return stored if is_later else now


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Return the sum of some numbers; None if one is missing."""
    known = list(numbers)
    return None if None in known else sum(filter(None, known))
