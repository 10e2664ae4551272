"""Decide which flight events are delivered late or twice, and in which file, by the hash of each event.

The delivery of an event depends only on its key, so any subset of days gives the same files as the whole year. The
decisions use slices of ``md5("<flight_id>|<event>|<seed>")`` in hex:

* digits 1-8: late, delivered on the day after its UTC day, for 1 % of the events;
* digits 9-16: delivered twice with the same content, for 0.5 %;
* digit 17, odd: the second copy comes a day after the first one; even: in the other file of the same day;
* digit 18, odd or even: the file, 01 or 00, like two partitions of a queue.
"""

from __future__ import annotations

from datetime import date

import duckdb

LATE_SHARE = 0.01
DOUBLED_SHARE = 0.005
SEED = 2013
FILES_A_DAY = 2

# An event can be late by a day, and its copy by another day; no event is later.
LONGEST_DELAY_DAYS = 2


def create_deliveries(connection: duckdb.DuckDBPyConnection, start: date, end: date) -> None:
    """Make table ``deliveries``: one row per copy of a flight event that is delivered on the days [start, end).

    It has the event's fields and ``delivery_day``, ``file_number``, ``is_late`` and ``is_second_copy``.
    """
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE deliveries AS
        WITH drawn AS (
            SELECT *, md5(concat_ws('|', flight_id, event, {SEED})) AS draw
            FROM flight_events
            WHERE event_at >= DATE '{start}' - {LONGEST_DELAY_DAYS} AND event_at < DATE '{end}'
        ), first_copies AS (
            SELECT * EXCLUDE (draw),
                   ('0x' || draw[1:8])::UBIGINT < {LATE_SHARE} * 4294967296 AS is_late,
                   ('0x' || draw[9:16])::UBIGINT < {DOUBLED_SHARE} * 4294967296 AS is_doubled,
                   ('0x' || draw[17])::INTEGER % 2 AS copy_delay_days,
                   ('0x' || draw[18])::INTEGER % 2 AS file_number,
                   event_at::DATE + is_late::INTEGER AS delivery_day
            FROM drawn
        ), copies AS (
            SELECT *, false AS is_second_copy FROM first_copies
            UNION ALL
            SELECT * REPLACE (delivery_day + copy_delay_days AS delivery_day,
                              CASE WHEN copy_delay_days = 1 THEN file_number ELSE 1 - file_number END AS file_number),
                   true AS is_second_copy
            FROM first_copies WHERE is_doubled
        )
        SELECT * FROM copies WHERE delivery_day >= DATE '{start}' AND delivery_day < DATE '{end}'
        """
    )
