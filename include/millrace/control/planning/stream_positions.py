"""The positions of the streams of a table, read without writing."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from deltalake.exceptions import TableNotFoundError

from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import read_position
from millrace.control.log.batch import StreamPosition
from millrace.control.log.streams import stream_of, streams_at
from millrace.paths import LakehousePaths
from millrace.specs.invalid_spec import MaybeInvalidSpec


def stream_position(
    spec: MaybeInvalidSpec, paths: LakehousePaths, ledger: Ledger, interval_start: datetime | None = None
) -> StreamPosition | None:
    """Return the position of the stream that loads an interval into a bronze table; None if there is no table yet.

    Of another table, or without an interval, return the position of the stream with the newest batch, with the sources
    of all streams.
    """
    if interval_start is not None and isinstance(spec, BronzeSpec):
        try:
            return read_position(paths.table(spec.table), stream_of(spec, interval_start), ledger)[0]
        except TableNotFoundError:
            return None
    positions = stream_positions(spec, paths, ledger)
    newest = max(positions, key=lambda position: position.last.version if position.last else -1, default=None)
    if newest is None or newest.last is None or len(positions) == 1:
        return newest
    sources = newest.last_sources.with_ranges_of([position.last_sources for position in positions])
    intent = newest.last.intent.model_copy(update={"sources": sources})
    return replace(newest, last=replace(newest.last, intent=intent))


def stream_positions(spec: MaybeInvalidSpec, paths: LakehousePaths, ledger: Ledger) -> list[StreamPosition]:
    """Return the position of every stream that the table may have; none if there is no table."""
    path = paths.table(spec.table)
    try:
        return [read_position(path, stream, ledger)[0] for stream in streams_at(spec.table, path)]
    except TableNotFoundError:
        return []
