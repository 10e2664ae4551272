"""Check that the peers' tables have the same rows: read by DuckDB, with no code of either peer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from demo.oracle.definitions import FLIGHT_EVENT_COLUMNS
from demo.reading import delta_reader

COLUMNS = {
    "bronze.flight_events": tuple(FLIGHT_EVENT_COLUMNS),
    "silver.flights": tuple(name for name in FLIGHT_EVENT_COLUMNS if name not in ("op", "event")),
    "gold.route_performance_daily": (
        "flight_date", "origin", "dest", "flights", "departed", "arrived", "cancelled", "delayed_15",
        "pct_delayed_15", "avg_dep_delay_min", "avg_arr_delay_min", "max_arr_delay_min",
    ),
}  # fmt: skip
"""The compared columns: those of the specs, without the sides' own columns, such as Millrace's stamps."""


class DifferentRowsError(Exception):
    """Raised when two tables differ, so that their times must not be compared."""


def require_same_rows(table: str, first: Path, second: Path) -> int:
    """Check that two Delta tables have the same rows, repetitions included, and return their number.

    Args:
        table: a table of `COLUMNS`.
        first: the folder of the first table.
        second: the folder of the second table.

    Raises:
        DifferentRowsError: the tables differ, or are empty; the message counts the rows and shows some of each.
    """
    columns = COLUMNS[table]
    only_first, only_second = _rows_without(columns, first, second), _rows_without(columns, second, first)
    if only_first or only_second:
        raise DifferentRowsError(
            f"{table}: {len(only_first)} rows are only in {first}, {len(only_second)} only in {second}, such as\n"
            + "\n".join([*only_first[:2], *only_second[:2]])
        )
    if not (rows := count_rows(first)):
        raise DifferentRowsError(f"{table}: both tables are empty: nothing was compared")
    return rows


def require_same_digest(columns: Sequence[str], relations: Mapping[str, str]) -> int:
    """Check that large relations have the same rows, by their number and the sum of their hashes; return the number.

    Args:
        columns: the compared columns.
        relations: side -> a relation of DuckDB's SQL.

    Raises:
        DifferentRowsError: the relations differ, or are empty; the message has the digests.
    """
    digest = f"count(*), sum(hash({', '.join(columns)})::HUGEINT)"
    with delta_reader() as reader:
        digests = {
            name: reader.execute(f"SELECT {digest} FROM {relation}").fetchall()[0]
            for name, relation in relations.items()
        }
    if len(set(digests.values())) != 1:
        raise DifferentRowsError(f"the sides do not have the same rows (rows, sum of their hashes): {digests}")
    rows = int(next(iter(digests.values()))[0])
    if not rows:
        raise DifferentRowsError(f"{', '.join(digests)}: nothing was compared, all are empty")
    return rows


def count_rows(table: Path) -> int:
    """Return the number of rows of a Delta table."""
    with delta_reader() as connection:
        return int(connection.execute(f"SELECT count(*) FROM delta_scan('{table}')").fetchall()[0][0])


def _rows_without(columns: Sequence[str], table: Path, other: Path) -> list[str]:
    """Return the rows of `table` that `other` lacks, as text: DuckDB returns instants as values only with pytz."""
    listed = ", ".join(columns)
    missing = f"SELECT {listed} FROM delta_scan('{table}') EXCEPT ALL SELECT {listed} FROM delta_scan('{other}')"
    with delta_reader() as connection:
        return [row for (row,) in connection.execute(f"SELECT missing::VARCHAR FROM ({missing}) missing").fetchall()]
