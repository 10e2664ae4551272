from __future__ import annotations

import hashlib
from datetime import date, timedelta

import duckdb
import pytest

from demo.source_system.repetition import DOUBLED_SHARE, LATE_SHARE, SEED

EVENTS = 1_000_898
MIDDLE = (date(2013, 7, 9), date(2013, 7, 12))


def one_row(source: duckdb.DuckDBPyConnection, query: str) -> tuple[object, ...]:
    return tuple(source.execute(query).fetchall()[0])


def fate(flight_id: str, event: str) -> tuple[bool, bool, int, int]:
    """Late, doubled, days between the copies and file: by hashlib and the rules of the module's docstring."""
    draw = hashlib.md5(f"{flight_id}|{event}|{SEED}".encode()).hexdigest()
    late, doubled = int(draw[:8], 16) < LATE_SHARE * 2**32, int(draw[8:16], 16) < DOUBLED_SHARE * 2**32
    return late, doubled, int(draw[16], 16) % 2, int(draw[17], 16) % 2


def test_over_all_days_every_event_is_delivered_once_but_for_its_copy(source: duckdb.DuckDBPyConnection) -> None:
    query = """SELECT COUNT(*), COUNT(DISTINCT (flight_id, event)), COUNT(*) FILTER (WHERE is_doubled)
        FROM deliveries WHERE NOT is_second_copy"""
    events, different, doubled = one_row(source, query)
    assert (events, different) == (EVENTS, EVENTS)
    copies = one_row(source, "SELECT COUNT(*), COUNT(DISTINCT (flight_id, event)) FROM deliveries WHERE is_second_copy")
    assert copies == (doubled, doubled)


@pytest.mark.parametrize(("column", "share"), [("is_late", LATE_SHARE), ("is_doubled", DOUBLED_SHARE)])
def test_the_shares_are_as_stated(source: duckdb.DuckDBPyConnection, column: str, share: float) -> None:
    found = one_row(source, f"SELECT AVG({column}::INTEGER) FROM deliveries WHERE NOT is_second_copy")[0]
    assert found == pytest.approx(share, rel=0.03)


def test_every_event_has_the_fate_of_its_own_hash(source: duckdb.DuckDBPyConnection) -> None:
    rows = source.execute(f"""SELECT flight_id, event, event_at::DATE, is_late, is_doubled, delivery_day, file_number
        FROM deliveries WHERE NOT is_second_copy AND event_at::DATE = DATE '{MIDDLE[0]}'""").fetchall()
    assert len(rows) > 2_500
    for flight_id, event, event_day, is_late, is_doubled, delivery_day, file_number in rows:
        late, doubled, _, number = fate(flight_id, event)
        assert (is_late, is_doubled, file_number) == (late, doubled, number)
        assert delivery_day == event_day + timedelta(days=late)


def test_a_window_delivers_its_events_but_for_late_ones_and_those_of_the_day_before(
    source: duckdb.DuckDBPyConnection,
) -> None:
    start, end = (f"DATE '{day}'" for day in MIDDLE)
    delivered = source.execute(f"""SELECT flight_id, event FROM deliveries
        WHERE NOT is_second_copy AND delivery_day >= {start} AND delivery_day < {end}""").fetchall()
    happened = source.execute(f"""SELECT flight_id, event, event_at::DATE FROM flight_events
        WHERE event_at >= {start} - 1 AND event_at < {end}""").fetchall()
    expected = [
        (flight_id, event) for flight_id, event, day in happened
        if MIDDLE[0] <= day + timedelta(days=fate(flight_id, event)[0]) < MIDDLE[1]
    ]  # fmt: skip
    assert len(expected) > 8_000
    assert sorted(delivered) == sorted(expected)


def test_a_late_event_comes_exactly_one_day_later_and_the_others_on_their_own_day(
    source: duckdb.DuckDBPyConnection,
) -> None:
    delays = source.execute("""SELECT is_late, delivery_day - event_at::DATE AS days, COUNT(*) > 0
        FROM deliveries WHERE NOT is_second_copy GROUP BY ALL ORDER BY ALL""").fetchall()
    assert delays == [(False, 0, True), (True, 1, True)]


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
