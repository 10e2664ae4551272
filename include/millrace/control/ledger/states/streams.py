"""The last batch of each stream of a table: a part of its state (ADR 25)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from millrace.contracts.job.report import RowCounts
from millrace.control.ledger.states.table_state import StatePart
from millrace.control.log.batch import BatchSources, Intent, Winner


class StreamEnd(BaseModel):
    """The last recorded batch of a stream: its intent, its version, and its row counts, None until it is closed."""

    model_config = ConfigDict(frozen=True)

    intent: Intent
    version: int
    rows: RowCounts | None = None


class Streams(StatePart):
    """The last batch of each stream of a table: a part of its state (ADR 25).

    Attributes:
        ends: stream -> its last batch. The log may hold newer batches, and the events may say that it was closed.
    """

    ends: dict[str, StreamEnd] = Field(default_factory=dict)

    @property
    def newest(self) -> StreamEnd | None:
        """The last batch of the table; None if there is none."""
        return max(self.ends.values(), key=lambda end: end.version, default=None)

    @property
    def sources(self) -> BatchSources:
        """The sources of the last batch of the table, with the versions that all streams have consumed."""
        last = self.newest.intent.sources if self.newest else BatchSources()
        return last.with_ranges_of([end.intent.sources for end in self.ends.values()])


def advance_streams(winner: Winner, rows: RowCounts | None, streams: Streams | None) -> Streams:
    """Return the streams with a batch as the last one of its stream, unless the stream has a newer batch."""
    intent = winner.intent
    ends = streams.ends if streams and streams.table_id == intent.table_id else {}
    end = ends.get(intent.stream)
    if end and (end.version > winner.version or (end.version == winner.version and rows is None)):
        return Streams(table_id=intent.table_id, ends=ends)
    now = StreamEnd(intent=intent, version=winner.version, rows=rows)
    return Streams(table_id=intent.table_id, ends={**ends, intent.stream: now})
