"""Whether the peers' tables hold the same rows: read by DuckDB, with no code of either peer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from demo.reading import delta_reader

COLUMNS = {
    "bronze.flight_events": (
        "flight_id", "op", "event", "event_at", "event_seq", "status", "flight_date", "carrier", "flight_number",
        "origin", "dest", "tailnum", "sched_dep_at", "sched_arr_at", "dep_at", "arr_at", "dep_delay_min",
        "arr_delay_min", "air_time_min", "distance_miles",
    ),
    "silver.flights": (
        "flight_id", "event_at", "event_seq", "status", "flight_date", "carrier", "flight_number", "origin", "dest",
        "tailnum", "sched_dep_at", "sched_arr_at", "dep_at", "arr_at", "dep_delay_min", "arr_delay_min",
        "air_time_min", "distance_miles",
    ),
    "gold.route_performance_daily": (
        "flight_date", "origin", "dest", "flights", "departed", "arrived", "cancelled", "delayed_15",
        "pct_delayed_15", "avg_dep_delay_min", "avg_arr_delay_min", "max_arr_delay_min",
    ),
}  # fmt: skip
"""What is compared: the columns of the specs; each side's own columns, such as Millrace's stamps, are left out."""


class DifferentRowsError(Exception):
    """Raised when two tables differ: their times must not be compared."""


def require_same_rows(table: str, one: Path, other: Path) -> int:
    """The number of rows of two Delta tables that hold the same ones, repetitions included.

    Args:
        table: which of `COLUMNS`.
        one: the folder of the first table.
        other: the folder of the second one.

    Raises:
        DifferentRowsError: they differ, or are empty; the message counts the rows and shows some of each side.
    """
    columns = COLUMNS[table]
    only_one, only_other = _rows_without(columns, one, other), _rows_without(columns, other, one)
    if only_one or only_other:
        raise DifferentRowsError(
            f"{table}: {len(only_one)} rows are in {one} alone, {len(only_other)} in {other} alone, such as\n"
            + "\n".join([*only_one[:2], *only_other[:2]])
        )
    if not (rows := count_rows(one)):
        raise DifferentRowsError(f"{table}: both tables are empty: nothing was compared")
    return rows


def require_same_digest(columns: Sequence[str], relations: Mapping[str, str]) -> int:
    """The number of rows of large relations that hold the same ones, by that number and the sum of each row's hash.

    Args:
        columns: what is compared.
        relations: whose it is -> a relation of DuckDB's SQL.

    Raises:
        DifferentRowsError: they differ, or are empty; the message tells the digests.
    """
    digest = f"count(*), sum(hash({', '.join(columns)})::HUGEINT)"
    with delta_reader() as reader:
        found = {name: reader.execute(f"SELECT {digest} FROM {one}").fetchall()[0] for name, one in relations.items()}
    if len(set(found.values())) != 1:
        raise DifferentRowsError(f"the sides do not hold the same rows (rows, sum of their hashes): {found}")
    rows = int(next(iter(found.values()))[0])
    if not rows:
        raise DifferentRowsError(f"{', '.join(found)}: nothing was compared, all are empty")
    return rows


def count_rows(table: Path) -> int:
    """The rows of a Delta table."""
    with delta_reader() as connection:
        return int(connection.execute(f"SELECT count(*) FROM delta_scan('{table}')").fetchall()[0][0])


def _rows_without(columns: Sequence[str], one: Path, other: Path) -> list[str]:
    """The rows of `one` that `other` lacks, as text: DuckDB gives instants as values only where pytz is."""
    listed = ", ".join(columns)
    missing = f"SELECT {listed} FROM delta_scan('{one}') EXCEPT ALL SELECT {listed} FROM delta_scan('{other}')"
    with delta_reader() as connection:
        return [row for (row,) in connection.execute(f"SELECT missing::VARCHAR FROM ({missing}) missing").fetchall()]
