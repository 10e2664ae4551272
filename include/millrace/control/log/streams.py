"""The streams of a table: one, or several that runs write at the same time.

A bronze table has streams by interval (ADR 45), a silver table has one for each of its sources (ADR 57).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, SilverSpec
from millrace.control.log.batch import ONE_STREAM, Stream
from millrace.control.log.followed_tables import newest_table
from millrace.specs.invalid_spec import MaybeInvalidSpec

CONCURRENT_BY = "millrace.concurrent_by"
"""The table property that says which streams may write the table; see `concurrency_of`. Unset is `none`."""

STREAMS = "millrace.streams"
"""The table property with the names of the streams of a silver table, while they change also of the earlier ones."""

NONE, CHANGING = "none", "changing"

INTERVAL_STREAMS = 11
"""The number of streams of a table with `concurrent_by: interval`.

A fixed number keeps the state of a table small, and lets a change of `concurrent_by` stop every stream. It is a prime
number, so that daily, weekly and hourly intervals that follow one another have different streams.
"""


def concurrency_of(spec: AnySpec) -> str:
    """Return which streams of the table the spec wants: `interval`, each source with its partitions, or `none`.

    >>> from millrace.contracts.spec.table_spec import parse_spec
    >>> sources = [{"table": "bronze.eu", "partitions": ["fr", "de"]}, {"table": "bronze.us", "partitions": ["us"]}]
    >>> concurrency_of(parse_spec({"table": "silver.orders", "sources": sources, "keys": ["country", "id"],
    ...     "columns": {"country": {}, "id": {}}, "partitioned_by": ["country"], "concurrent_by": "country"}))
    "country: bronze.eu ['de', 'fr'], bronze.us ['us']"
    """
    if isinstance(spec, BronzeSpec):
        return spec.concurrent_by or NONE
    if not isinstance(spec, SilverSpec) or not spec.concurrent_by:
        return NONE
    by_source = sorted((source.table, sorted(source.partitions, key=repr)) for source in spec.sources)
    return f"{spec.concurrent_by}: {', '.join(f'{table} {values}' for table, values in by_source)}"


def concurrency_at(table: LakePath) -> str:
    """Return which streams may write the table now, as `concurrency_of`, or `changing`.

    Raises:
        TableNotFoundError: there is no table at the path.
    """
    return _properties(table).get(CONCURRENT_BY, NONE)


def stream_of(spec: MaybeInvalidSpec, interval_start: datetime) -> Stream:
    """Return the stream that loads an interval into a bronze table, or the one stream of another table.

    It depends on the landing folder alone, so that a file has one stream, whatever the length of the run's interval.

    >>> from datetime import UTC
    >>> from millrace.contracts.spec.table_spec import parse_spec
    >>> spec = parse_spec({"table": "bronze.orders", "source": {"landing": "orders", "format": "json"},
    ...     "columns": {"id": {}}, "concurrent_by": "interval"})
    >>> [stream_of(spec, datetime(2013, 1, day, hour, tzinfo=UTC)).name for day, hour in ((1, 0), (1, 6), (2, 0))]
    ['interval-2', 'interval-2', 'interval-3']
    """
    if not (isinstance(spec, BronzeSpec) and spec.concurrent_by):
        return Stream(spec.table)
    folder = spec.landing_source.path.format(interval_start=interval_start)
    return _interval_stream(spec.table, sum(map(int, re.findall(r"[0-9]+", folder))))


def streams_of(spec: AnySpec) -> tuple[Stream, ...]:
    """Return every stream that runs of the spec may write."""
    if not isinstance(spec, BronzeSpec | SilverSpec) or not spec.concurrent_by:
        return (Stream(spec.table),)
    if isinstance(spec, BronzeSpec):
        return tuple(_interval_stream(spec.table, number) for number in range(INTERVAL_STREAMS))
    return tuple(Stream(spec.table, source.table) for source in spec.sources)


def in_turn(streams: Sequence[Stream], interval_start: datetime) -> tuple[Stream, ...]:
    """Return the streams in the order in which the run of an interval writes them: runs of other days begin elsewhere.

    >>> from datetime import UTC
    >>> streams = [Stream("silver.orders", name) for name in ("bronze.eu", "bronze.us")]
    >>> [[stream.name for stream in in_turn(streams, datetime(2013, 1, day, tzinfo=UTC))] for day in (1, 2)]
    [['bronze.us', 'bronze.eu'], ['bronze.eu', 'bronze.us']]
    """
    first = interval_start.toordinal() % len(streams)
    return *streams[first:], *streams[:first]


def streams_at(table: str, path: LakePath) -> tuple[Stream, ...]:
    """Return every stream that may write a table that exists, or that may know a position in its sources.

    A silver table with streams of its sources has handed over the position of the one stream, whose last batch holds
    no rows and need not be certified. While its streams change, it has all of them.

    Raises:
        TableNotFoundError: there is no table at the path.
    """
    properties, one = _properties(path), Stream(table)
    if CONCURRENT_BY not in properties:
        return (one,)
    if STREAMS in properties:
        of_sources = tuple(Stream(table, name) for name in properties[STREAMS].split(",") if name)
        return of_sources if of_sources and properties[CONCURRENT_BY] != CHANGING else (one, *of_sources)
    return one, *(_interval_stream(table, number) for number in range(INTERVAL_STREAMS))


def stream_properties(spec: AnySpec) -> dict[str, str]:
    """Return the properties of a table with the streams of a spec; none if the spec wants one stream."""
    if (concurrency := concurrency_of(spec)) == NONE:
        return {}
    of_sources = {STREAMS: names_of(streams_of(spec))} if isinstance(spec, SilverSpec) else {}
    return {CONCURRENT_BY: concurrency, **of_sources}


def names_of(streams: Iterable[Stream]) -> str:
    """Return the property `STREAMS`: the names of the streams of sources.

    >>> names_of([Stream("silver.orders"), Stream("silver.orders", "bronze.us"), Stream("silver.orders", "bronze.eu")])
    'bronze.eu,bronze.us'
    """
    return ",".join(sorted({stream.name for stream in streams} - {ONE_STREAM}))


def _properties(table: LakePath) -> dict[str, str]:
    return newest_table(table).definition.metadata().configuration


def _interval_stream(table: str, number: int) -> Stream:
    return Stream(table, f"interval-{number % INTERVAL_STREAMS}")
