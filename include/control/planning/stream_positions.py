"""The positions of the streams of a table, read without writing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from deltalake.exceptions import TableNotFoundError

from include.contracts.spec.table_spec import BronzeSpec
from include.control.landing.streams import all_streams, stream_of
from include.control.ledger.ledger import Ledger
from include.control.ledger.resolution import read_position
from include.control.log.batch import Stream, StreamPosition
from include.paths import LakehousePaths
from include.specs.invalid_spec import MaybeInvalidSpec


def stream_position(
    spec: MaybeInvalidSpec, paths: LakehousePaths, ledger: Ledger, interval_start: datetime | None = None
) -> StreamPosition | None:
    """Return the position of the stream that loads an interval; None if there is no table yet.

    Without an interval, return the position of the stream with the newest batch.
    """
    if interval_start is None:
        positions = stream_positions(spec, paths, ledger)
        return max(positions, key=lambda position: position.last.version if position.last else -1, default=None)
    return next(_positions([stream_of(spec, interval_start)], paths, ledger), None)


def stream_positions(spec: MaybeInvalidSpec, paths: LakehousePaths, ledger: Ledger) -> list[StreamPosition]:
    """Return the position of every stream that the table may have; none if there is no table."""
    has_several = isinstance(spec, BronzeSpec) and spec.concurrent_by
    streams = all_streams(spec.table) if has_several else (Stream(spec.table),)
    return list(_positions(streams, paths, ledger))


def _positions(streams: Iterable[Stream], paths: LakehousePaths, ledger: Ledger) -> Iterator[StreamPosition]:
    try:
        for stream in streams:
            yield read_position(paths.table(stream.table), stream, ledger)[0]
    except TableNotFoundError:
        return
