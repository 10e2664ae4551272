"""The whole year of the source: what its events tell, and when and how often each of them is delivered."""

from __future__ import annotations

import hashlib
from datetime import date, timedelta

import duckdb
import pytest

from demo.source_system.flight_events import EVENT_FIELDS
from demo.source_system.repetition import DOUBLED_SHARE, LATE_SHARE, SEED

FLIGHTS, EVENTS = 336_776, 1_000_898
MIDDLE = date(2013, 7, 9)


def one_row(source: duckdb.DuckDBPyConnection, query: str) -> tuple[object, ...]:
    return tuple(source.execute(query).fetchall()[0])


def test_the_source_holds_every_row_of_the_package_as_it_is(source: duckdb.DuckDBPyConnection) -> None:
    for table, rows in (("source_flights", FLIGHTS), ("weather", 26_115), ("planes", 3_322)):
        assert one_row(source, f"SELECT COUNT(*) FROM {table}") == (rows,)
    by_local_hour = "SELECT COUNT(DISTINCT (origin, year, month, day, hour)) FROM weather"
    assert one_row(source, "SELECT COUNT(DISTINCT (origin, time_hour)) FROM weather") == (26_115,)
    assert one_row(source, by_local_hour) == (26_112,), "01:00 came twice at three airports on 2013-11-03"


def test_a_flight_id_is_its_local_departure_date_then_carrier_number_and_origin(
    source: duckdb.DuckDBPyConnection,
) -> None:
    assert one_row(source, "SELECT COUNT(*), COUNT(DISTINCT flight_id) FROM flights") == (FLIGHTS, FLIGHTS)
    query = """SELECT flight_id, sched_dep_at::VARCHAR, sched_arr_at::VARCHAR FROM flights
        WHERE carrier = 'UA' AND flight_number = 1545 AND flight_date = DATE '2013-01-01'"""
    expected = ("2013-01-01-UA-1545-EWR", "2013-01-01 10:15:00+00", "2013-01-01 14:19:00+00")
    assert one_row(source, query) == expected, "05:15 in New York, and 08:19 in Houston"


def test_each_event_of_a_flights_life_comes_at_its_own_time_and_in_its_order(source: duckdb.DuckDBPyConnection) -> None:
    lives = source.execute("""SELECT life, COUNT(*) FROM (
        SELECT string_agg(event, ' ' ORDER BY event_seq) AS life FROM flight_events GROUP BY flight_id)
        GROUP BY life ORDER BY life""").fetchall()
    assert lives == [
        ("scheduled cancelled", 8_255), ("scheduled departed", 1_175), ("scheduled departed arrived", 327_346),
    ]  # fmt: skip
    times = """SELECT COUNT(*) FILTER (WHERE status = event AND op = if(event_seq = 1, 'insert', 'update')
        AND event_at = CASE event WHEN 'scheduled' THEN sched_dep_at - INTERVAL 24 HOUR WHEN 'departed' THEN dep_at
            WHEN 'cancelled' THEN sched_dep_at WHEN 'arrived' THEN arr_at END) FROM flight_events"""
    assert one_row(source, times) == (EVENTS,)
    in_order = """SELECT COUNT(*) FILTER (WHERE event_at > previous) FROM (
        SELECT event_at, LAG(event_at) OVER (PARTITION BY flight_id ORDER BY event_seq) AS previous
        FROM flight_events)"""
    assert one_row(source, in_order) == (EVENTS - FLIGHTS,)


def test_an_event_tells_only_what_is_known_at_its_time(source: duckdb.DuckDBPyConnection) -> None:
    assert set(EVENT_FIELDS) == set(source.table("flight_events").columns)
    known = source.execute("""SELECT event, COUNT(tailnum) > 0, COUNT(dep_at) > 0, COUNT(dep_delay_min) > 0,
        COUNT(arr_at) > 0, COUNT(arr_delay_min) > 0, COUNT(air_time_min) > 0, bool_and(sched_arr_at IS NOT NULL)
        FROM flight_events GROUP BY event ORDER BY event""").fetchall()
    assert known == [
        ("arrived", True, True, True, True, True, True, True),
        ("cancelled", True, False, False, False, False, False, True),
        ("departed", True, True, True, False, False, False, True),
        ("scheduled", False, False, False, False, False, False, True),
    ]


def test_over_all_days_every_event_is_delivered_once_but_for_its_copy(source: duckdb.DuckDBPyConnection) -> None:
    query = """SELECT COUNT(*), COUNT(DISTINCT (flight_id, event)), AVG(is_late::INTEGER), AVG(is_doubled::INTEGER),
        COUNT(*) FILTER (WHERE is_doubled) FROM deliveries WHERE NOT is_second_copy"""
    events, different, late, doubled, copied = one_row(source, query)
    assert (events, different) == (EVENTS, EVENTS)
    assert (late, doubled) == (pytest.approx(LATE_SHARE, rel=0.03), pytest.approx(DOUBLED_SHARE, rel=0.03))
    copies = one_row(source, "SELECT COUNT(*), COUNT(DISTINCT (flight_id, event)) FROM deliveries WHERE is_second_copy")
    assert copies == (copied, copied)


def test_every_event_has_the_fate_of_its_own_hash(source: duckdb.DuckDBPyConnection) -> None:
    """By hashlib and the rules of the module's docstring."""
    rows = source.execute(f"""SELECT flight_id, event, is_late, is_doubled, delivery_day, file_number
        FROM deliveries WHERE NOT is_second_copy AND event_at::DATE = DATE '{MIDDLE}'""").fetchall()
    assert len(rows) > 2_500
    for flight_id, event, is_late, is_doubled, delivery_day, file_number in rows:
        draw = hashlib.md5(f"{flight_id}|{event}|{SEED}".encode()).hexdigest()
        late, doubled = int(draw[:8], 16) < LATE_SHARE * 2**32, int(draw[8:16], 16) < DOUBLED_SHARE * 2**32
        assert (is_late, is_doubled, file_number) == (late, doubled, int(draw[17], 16) % 2)
        assert delivery_day == MIDDLE + timedelta(days=late)


def test_a_copy_has_the_same_content_and_comes_in_another_file(source: duckdb.DuckDBPyConnection) -> None:
    differs = """SELECT COUNT(*), COUNT(*) FILTER (WHERE first.delivery_day = second.delivery_day),
        COUNT(*) FILTER (WHERE (first.delivery_day, first.file_number) = (second.delivery_day, second.file_number)),
        COUNT(*) FILTER (WHERE second.delivery_day - first.delivery_day NOT IN (0, 1)),
        COUNT(*) FILTER (WHERE first.event_at <> second.event_at OR first.event_seq <> second.event_seq
                         OR first.dep_delay_min IS DISTINCT FROM second.dep_delay_min)
        FROM deliveries AS first JOIN deliveries AS second USING (flight_id, event)
        WHERE NOT first.is_second_copy AND second.is_second_copy"""
    copies, same_day, same_file, other_delay, other_content = one_row(source, differs)
    assert copies == pytest.approx(EVENTS * DOUBLED_SHARE, rel=0.03)
    assert same_day == pytest.approx(EVENTS * DOUBLED_SHARE / 2, rel=0.1)
    assert (same_file, other_delay, other_content) == (0, 0, 0)
