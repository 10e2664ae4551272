from __future__ import annotations

import duckdb

from demo.source_system.nycflights import data_folder


def one_row(source: duckdb.DuckDBPyConnection, query: str) -> tuple[object, ...]:
    return tuple(source.execute(query).fetchall()[0])


def test_the_source_holds_every_row_of_the_package_as_it_is(source: duckdb.DuckDBPyConnection) -> None:
    for table, rows in (("source_flights", 336_776), ("weather", 26_115), ("planes", 3_322)):
        assert one_row(source, f"SELECT COUNT(*) FROM {table}") == (rows,)
    assert (data_folder() / "weather.csv").read_text().count("\n") == 26_115 + 1


def test_time_hour_is_the_instant_of_the_local_hour_of_scheduled_departure(source: duckdb.DuckDBPyConnection) -> None:
    query = """SELECT COUNT(*), COUNT(*) FILTER (
        WHERE time_hour = timezone('America/New_York', make_timestamp(year, month, day, hour, 0, 0))
        AND sched_dep_time = hour * 100 + minute) FROM source_flights"""
    assert one_row(source, query) == (336_776, 336_776)


def test_weather_has_one_reading_an_airport_and_instant_but_not_an_airport_and_local_hour(
    source: duckdb.DuckDBPyConnection,
) -> None:
    by_instant = "SELECT COUNT(DISTINCT (origin, time_hour)) FROM weather"
    by_local_hour = "SELECT COUNT(DISTINCT (origin, year, month, day, hour)) FROM weather"
    assert one_row(source, by_instant) == (26_115,)
    assert one_row(source, by_local_hour) == (26_112,), "01:00 came twice at three airports on 2013-11-03"


def test_a_tail_number_names_one_plane(source: duckdb.DuckDBPyConnection) -> None:
    assert one_row(source, "SELECT COUNT(DISTINCT tailnum), COUNT(*) FROM planes") == (3_322, 3_322)


def test_every_destination_has_a_time_zone(source: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT COUNT(*), COUNT(tzone) FROM source_flights JOIN airports ON faa = dest"
    assert one_row(source, query) == (336_776, 336_776)
