"""The streams of a table: one, or several that runs of different intervals write at the same time (ADR 45)."""

from __future__ import annotations

import re
from datetime import datetime

from include.contracts.lake_path import LakePath
from include.contracts.spec.table_spec import AnySpec, BronzeSpec
from include.control.log.batch import Stream
from include.control.log.followed_tables import newest_table
from include.specs.invalid_spec import MaybeInvalidSpec

CONCURRENT_BY = "millrace.concurrent_by"
"""The table property that says which streams may write the table: `interval`, `none` or `changing`; unset is `none`."""

NONE, CHANGING = "none", "changing"

INTERVAL_STREAMS = 11
"""The number of streams of a table with `concurrent_by: interval`.

A fixed number keeps the state of a table small, and lets a change of `concurrent_by` stop every stream. It is a prime
number, so that daily, weekly and hourly intervals that follow one another have different streams.
"""


def concurrency_of(spec: AnySpec) -> str:
    """Return `interval` or `none`: which streams of the table the spec wants."""
    return (isinstance(spec, BronzeSpec) and spec.concurrent_by) or NONE


def concurrency_at(table: LakePath) -> str:
    """Return `interval`, `none` or `changing`: which streams may write the table now.

    Raises:
        TableNotFoundError: there is no table at the path.
    """
    return newest_table(table).definition.metadata().configuration.get(CONCURRENT_BY, NONE)


def stream_of(spec: MaybeInvalidSpec, interval_start: datetime) -> Stream:
    """Return the stream that loads an interval.

    It depends on the landing folder alone, so that a file has one stream, whatever the length of the run's interval.

    >>> from datetime import UTC
    >>> from include.contracts.spec.table_spec import parse_spec
    >>> spec = parse_spec({"table": "bronze.orders", "source": {"landing": "orders", "format": "json"},
    ...     "columns": {"id": {}}, "concurrent_by": "interval"})
    >>> [stream_of(spec, datetime(2013, 1, day, hour, tzinfo=UTC)).name for day, hour in ((1, 0), (1, 6), (2, 0))]
    ['interval-2', 'interval-2', 'interval-3']
    """
    if not (isinstance(spec, BronzeSpec) and spec.concurrent_by):
        return Stream(spec.table)
    folder = spec.landing_source.path.format(interval_start=interval_start)
    return _interval_stream(spec.table, sum(map(int, re.findall(r"[0-9]+", folder))))


def all_streams(table: str) -> tuple[Stream, ...]:
    """Return every stream that a table may have had, by any spec."""
    return Stream(table), *(_interval_stream(table, number) for number in range(INTERVAL_STREAMS))


def _interval_stream(table: str, number: int) -> Stream:
    return Stream(table, f"interval-{number % INTERVAL_STREAMS}")
