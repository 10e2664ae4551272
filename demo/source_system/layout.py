"""Lay out the landing files of a range of UTC days."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import duckdb

from demo.source_system.flight_events import EVENT_FIELDS, create_flight_events
from demo.source_system.landing import csv_table, day_folder, json_lines, write_whole
from demo.source_system.nycflights import open_source
from demo.source_system.repetition import FILES_A_DAY, create_deliveries

# The first flight, of 2013-01-01, is announced a day ahead; the last copy of a 2013-12-31 flight's event comes late.
FIRST_DAY = date(2012, 12, 31)
LAST_DAY = date(2014, 1, 2)

_INSTANTS = ("event_at", "sched_dep_at", "sched_arr_at", "dep_at", "arr_at")


class OutsideSourceDataError(ValueError):
    """Raised when a range of days is empty, or has days without source data."""


@dataclass(frozen=True)
class DayDelivery:
    """The delivery of one feed on one UTC day.

    ``rows`` counts every delivered row; of these, ``late`` rows belong to the day before and ``doubled`` rows are
    second copies (a second copy of a late event is counted in both).
    """

    feed: str
    day: date
    files: int
    rows: int
    late: int = 0
    doubled: int = 0


@dataclass(frozen=True)
class Delivery:
    """The deliveries of all feeds over a range of days, in order of day and feed."""

    days: tuple[DayDelivery, ...]

    def rows(self, feed: str) -> int:
        """Return the number of rows that a feed delivers, second copies included."""
        return sum(delivered.rows for delivered in self.days if delivered.feed == feed)


def lay_out(landing: Path, start: date, end: date) -> Delivery:
    """Write the landing files of the UTC days [start, end), and count their rows.

    A day always gives the same bytes, whatever other days are laid out; existing files with these bytes do not change.

    Raises:
        OutsideSourceDataError: the range is empty or not within [FIRST_DAY, LAST_DAY].
    """
    days = _days(start, end)
    with open_source() as connection:
        create_flight_events(connection)
        create_deliveries(connection, start, end)
        return Delivery(tuple(delivered for day in days for delivered in _lay_out_day(connection, landing, day)))


def _days(start: date, end: date) -> list[date]:
    if not FIRST_DAY <= start < end <= LAST_DAY + timedelta(days=1):
        raise OutsideSourceDataError(
            f"no source data for the days [{start}, {end}): choose a start of {FIRST_DAY} or later and an end "
            f"after it, up to {LAST_DAY + timedelta(days=1)} (the end itself is not delivered)"
        )
    return [start + timedelta(days=n) for n in range((end - start).days)]


def _lay_out_day(connection: duckdb.DuckDBPyConnection, landing: Path, day: date) -> Iterator[DayDelivery]:
    yield _lay_out_flight_events(connection, landing, day)
    yield _lay_out_csv(connection, landing, day, "planes", "SELECT * FROM planes ORDER BY tailnum")
    # The hourly readings; a day without readings gives only a header.
    readings = f"SELECT * FROM weather WHERE time_hour LIKE '{day}T%' ORDER BY time_hour, origin"
    yield _lay_out_csv(connection, landing, day, "weather", readings)


def _lay_out_flight_events(connection: duckdb.DuckDBPyConnection, landing: Path, day: date) -> DayDelivery:
    folder = day_folder(landing, "flight_events", day)
    for number in range(FILES_A_DAY):
        write_whole(folder / f"flight_events_{number:02}.json.gz", json_lines(_event_lines(connection, day, number)))
    rows, late, doubled = connection.execute(
        "SELECT count(*), count_if(is_late), count_if(is_second_copy) "
        f"FROM deliveries WHERE delivery_day = DATE '{day}'"
    ).fetchall()[0]
    return DayDelivery("flight_events", day, FILES_A_DAY, rows, late, doubled)


def _event_lines(connection: duckdb.DuckDBPyConnection, day: date, file_number: int) -> Iterator[str]:
    """Return the JSON of each event of a file, in the order of the events."""
    instants = {name: f"strftime({name}, '%Y-%m-%dT%H:%M:%SZ')" for name in _INSTANTS}
    fields = ", ".join(f"'{name}', {instants.get(name, name)}" for name in EVENT_FIELDS)
    rows = connection.execute(
        f"SELECT json_object({fields}) FROM deliveries WHERE delivery_day = DATE '{day}' "
        f"AND file_number = {file_number} ORDER BY event_at, flight_id, event_seq"
    ).fetchall()
    return (line for (line,) in rows)


def _lay_out_csv(connection: duckdb.DuckDBPyConnection, landing: Path, day: date, feed: str, query: str) -> DayDelivery:
    result = connection.execute(query)
    header = [column[0] for column in result.description or ()]
    rows = result.fetchall()
    write_whole(day_folder(landing, feed, day) / f"{feed}.csv", csv_table(header, rows))
    return DayDelivery(feed, day, files=1, rows=len(rows))
