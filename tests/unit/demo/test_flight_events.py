from __future__ import annotations

import duckdb
import pytest

from demo.source_system.flight_events import EVENT_FIELDS

FLIGHTS = 336_776


def one_row(source: duckdb.DuckDBPyConnection, query: str) -> tuple[object, ...]:
    return tuple(source.execute(query).fetchall()[0])


def test_the_flight_id_is_unique_over_the_year_by_local_date_and_not_by_utc_date(
    source: duckdb.DuckDBPyConnection,
) -> None:
    assert one_row(source, "SELECT COUNT(*), COUNT(DISTINCT flight_id) FROM flights") == (FLIGHTS, FLIGHTS)
    by_utc_date = "SELECT COUNT(DISTINCT (carrier, flight_number, origin, sched_dep_at::DATE)) FROM flights"
    assert one_row(source, by_utc_date) == (FLIGHTS - 1_108,)


def test_a_flight_id_is_its_local_departure_date_then_carrier_number_and_origin(
    source: duckdb.DuckDBPyConnection,
) -> None:
    query = """SELECT flight_id, sched_dep_at::VARCHAR, sched_arr_at::VARCHAR FROM flights
        WHERE carrier = 'UA' AND flight_number = 1545 AND flight_date = DATE '2013-01-01'"""
    expected = ("2013-01-01-UA-1545-EWR", "2013-01-01 10:15:00+00", "2013-01-01 14:19:00+00")
    assert one_row(source, query) == expected, "05:15 in New York, and 08:19 in Houston"


def test_every_flight_is_announced_once_24_hours_before_its_scheduled_departure(
    source: duckdb.DuckDBPyConnection,
) -> None:
    query = """SELECT COUNT(*), COUNT(DISTINCT flight_id), COUNT(*) FILTER (
        WHERE event_at + INTERVAL 24 HOUR = sched_dep_at AND event_seq = 1 AND op = 'insert' AND status = 'scheduled')
        FROM flight_events WHERE event = 'scheduled'"""
    assert one_row(source, query) == (FLIGHTS, FLIGHTS, FLIGHTS)


@pytest.mark.parametrize(
    ("event", "time", "number"),
    [("departed", "dep_at", 328_521), ("cancelled", "sched_dep_at", 8_255), ("arrived", "arr_at", 327_346)],
)
def test_every_later_event_is_an_update_at_its_own_time(
    source: duckdb.DuckDBPyConnection, event: str, time: str, number: int
) -> None:
    query = f"""SELECT COUNT(DISTINCT flight_id),
        COUNT(*) FILTER (WHERE op = 'update' AND status = event AND event_at = {time})
        FROM flight_events WHERE event = '{event}'"""
    assert one_row(source, query) == (number, number)


def test_a_flight_departs_or_is_cancelled_and_arrives_only_after_departing(source: duckdb.DuckDBPyConnection) -> None:
    lives = source.execute("""SELECT life, COUNT(*) FROM (
        SELECT string_agg(event, ' ' ORDER BY event_seq) AS life FROM flight_events GROUP BY flight_id)
        GROUP BY life ORDER BY life""").fetchall()
    assert lives == [
        ("scheduled cancelled", 8_255), ("scheduled departed", 1_175), ("scheduled departed arrived", 327_346),
    ]  # fmt: skip


def test_the_order_of_time_is_the_order_of_sequence(source: duckdb.DuckDBPyConnection) -> None:
    query = """SELECT COUNT(*), COUNT(*) FILTER (WHERE event_at > previous) FROM (
        SELECT event_at, LAG(event_at) OVER (PARTITION BY flight_id ORDER BY event_seq) AS previous
        FROM flight_events) WHERE previous IS NOT NULL"""
    assert one_row(source, query) == (664_122, 664_122)


def test_an_event_tells_only_what_is_known_at_its_time(source: duckdb.DuckDBPyConnection) -> None:
    known = source.execute("""SELECT event, COUNT(tailnum) > 0, COUNT(dep_at) > 0, COUNT(dep_delay_min) > 0,
        COUNT(arr_at) > 0, COUNT(arr_delay_min) > 0, COUNT(air_time_min) > 0, bool_and(sched_arr_at IS NOT NULL)
        FROM flight_events GROUP BY event ORDER BY event""").fetchall()
    assert known == [
        ("arrived", True, True, True, True, True, True, True),
        ("cancelled", True, False, False, False, False, False, True),
        ("departed", True, True, True, False, False, False, True),
        ("scheduled", False, False, False, False, False, False, True),
    ]


def test_an_event_has_at_most_twenty_fields_and_all_of_them_exist(source: duckdb.DuckDBPyConnection) -> None:
    assert len(EVENT_FIELDS) == 20
    assert set(EVENT_FIELDS) == set(source.table("flight_events").columns)


def test_a_flight_is_in_the_air_for_less_time_than_between_departure_and_arrival(
    source: duckdb.DuckDBPyConnection,
) -> None:
    query = """SELECT COUNT(*), COUNT(*) FILTER (WHERE arr_at - dep_at > to_minutes(air_time_min))
        FROM flights WHERE arr_at IS NOT NULL"""
    assert one_row(source, query) == (327_346, 327_346)
