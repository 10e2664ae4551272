"""The whole year of the source: what its events tell, and when and how often each of them is delivered."""

from __future__ import annotations

import duckdb
import pytest

from demo.source_system.flight_events import EVENT_FIELDS
from demo.source_system.repetition import DOUBLED_SHARE

FLIGHTS, EVENTS = 336_776, 1_000_898


def one_row(source: duckdb.DuckDBPyConnection, query: str) -> tuple[object, ...]:
    return tuple(source.execute(query).fetchall()[0])


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
    delivered = "SELECT COUNT(*), COUNT(DISTINCT (flight_id, event)) FROM deliveries WHERE {}is_second_copy"
    assert one_row(source, delivered.format("NOT ")) == (EVENTS, EVENTS), "every event once but for its copy"
    assert one_row(source, delivered.format("")) == (copies, copies)
