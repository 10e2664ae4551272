"""The life of each flight as events: scheduled, then departed and arrived, or cancelled.

The times (all UTC):

* ``sched_dep_at``: the data's ``time_hour`` (an instant) plus its ``minute``.
* ``dep_at``: ``sched_dep_at`` plus ``dep_delay``. On the origin's clock this is the data's ``dep_time`` for every one
  of the 328,521 flights that left.
* ``sched_arr_at``: the first moment after ``sched_dep_at`` at which a clock at the destination shows
  ``sched_arr_time``. The data gives no arrival date; the longest scheduled flight takes 11 h 40 min.
* ``arr_at``: ``sched_arr_at`` plus ``arr_delay``. On the destination's clock this is the data's ``arr_time`` for all
  but one of the 327,346 flights that have a delay (B6 35 of 2013-03-09 landed while the clocks went forward).

Not included: a flight that left but has no ``arr_delay`` (1,175 of them, most of them diverted) has no arrived
event, because the data does not say on which day it landed; it stays ``departed``. The aircraft (``tailnum``) is
unknown until the flight has left or is cancelled: the data says which one flew, not which one was planned.
"""

from __future__ import annotations

import duckdb

EVENT_FIELDS = (
    "flight_id", "op", "event", "event_at", "event_seq", "status", "flight_date", "carrier", "flight_number",
    "origin", "dest", "tailnum", "sched_dep_at", "sched_arr_at", "dep_at", "arr_at", "dep_delay_min",
    "arr_delay_min", "air_time_min", "distance_miles",
)  # fmt: skip

# The date comes first in the key, so that the smallest and largest key of a data file are also its range of dates.
# One zone at a time: DuckDB converts a column with a constant zone fourteen times as fast as with a zone in each row.
_FLIGHTS_TO_ONE_ZONE = """
WITH located AS (
    SELECT make_date(year, month, day) AS flight_date, time_hour + to_minutes(minute) AS sched_dep_at,
           timezone('{zone}', sched_dep_at) AS dest_clock_at_sched_dep,
           date_trunc('day', dest_clock_at_sched_dep)
               + to_minutes(sched_arr_time // 100 * 60 + sched_arr_time % 100) AS same_day_arrival, *
    FROM source_flights WHERE dest IN (SELECT faa FROM airports WHERE tzone = '{zone}')
), timed AS (
    SELECT *, timezone('{zone}', CASE WHEN same_day_arrival > dest_clock_at_sched_dep THEN same_day_arrival
                                   ELSE same_day_arrival + INTERVAL 1 DAY END) AS sched_arr_at
    FROM located
)
SELECT concat_ws('-', flight_date, carrier, flight, origin) AS flight_id, flight_date, carrier,
       flight AS flight_number, origin, dest, tailnum, sched_dep_at, sched_arr_at,
       sched_dep_at + to_minutes(dep_delay) AS dep_at, sched_arr_at + to_minutes(arr_delay) AS arr_at,
       dep_delay AS dep_delay_min, arr_delay AS arr_delay_min, air_time AS air_time_min, distance AS distance_miles
FROM timed
"""

# Each event is a full image: everything that is known of the flight at that time.
_EVENTS = """
CREATE VIEW flight_events AS
SELECT flight_id, CASE event WHEN 'scheduled' THEN 'insert' ELSE 'update' END AS op, event,
       CASE event WHEN 'departed' THEN dep_at WHEN 'arrived' THEN arr_at WHEN 'cancelled' THEN sched_dep_at
                  ELSE sched_dep_at - INTERVAL 24 HOUR END AS event_at,
       event_seq, event AS status, flight_date, carrier, flight_number, origin, dest,
       CASE WHEN event <> 'scheduled' THEN tailnum END AS tailnum,
       sched_dep_at, sched_arr_at,
       CASE WHEN event IN ('departed', 'arrived') THEN dep_at END AS dep_at,
       CASE WHEN event = 'arrived' THEN arr_at END AS arr_at,
       CASE WHEN event IN ('departed', 'arrived') THEN dep_delay_min END AS dep_delay_min,
       CASE WHEN event = 'arrived' THEN arr_delay_min END AS arr_delay_min,
       CASE WHEN event = 'arrived' THEN air_time_min END AS air_time_min,
       distance_miles
FROM flights
CROSS JOIN (VALUES ('scheduled', 1), ('departed', 2), ('cancelled', 2), ('arrived', 3)) AS life(event, event_seq)
WHERE CASE event WHEN 'departed' THEN dep_at IS NOT NULL WHEN 'cancelled' THEN dep_at IS NULL
                 WHEN 'arrived' THEN arr_at IS NOT NULL ELSE true END
"""


def create_flight_events(connection: duckdb.DuckDBPyConnection) -> None:
    """Add table ``flights`` (one row per flight) and view ``flight_events`` (one row per event) to an open source."""
    zones = connection.execute(
        "SELECT DISTINCT tzone FROM airports JOIN source_flights ON dest = faa ORDER BY tzone"
    ).fetchall()
    all_zones = " UNION ALL ".join(f"({_FLIGHTS_TO_ONE_ZONE.format(zone=zone)})" for (zone,) in zones)
    connection.execute(f"CREATE TABLE flights AS {all_zones}")
    connection.execute(_EVENTS)
