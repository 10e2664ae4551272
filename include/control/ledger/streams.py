"""Where the streams of a table stand: a part of its state (ADR 25)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from include.contracts.job.report import RowCounts
from include.control.ledger.table_state import StatePart
from include.control.log.batch import Intent, Winner


class StreamEnd(BaseModel):
    """The last batch of a stream that the ledger knows.

    Attributes:
        intent: what it was to do.
        version: the version that it made.
        rows: its row counts; None while it is not known to be closed.
    """

    model_config = ConfigDict(frozen=True)

    intent: Intent
    version: int
    rows: RowCounts | None = None


class Streams(StatePart):
    """Where the streams of a table stand: a part of its state (ADR 25).

    Attributes:
        ends: stream -> its last batch. The log may hold newer ones, and the events may say that it was closed.
    """

    ends: dict[str, StreamEnd] = Field(default_factory=dict)


def advance_streams(winner: Winner, rows: RowCounts | None, kept: Streams | None) -> Streams:
    """Where the streams stand once a batch has come, unless its stream has come further."""
    intent = winner.intent
    ends = kept.ends if kept and kept.table_id == intent.table_id else {}
    end = ends.get(intent.stream)
    if end and (end.version > winner.version or (end.version == winner.version and rows is None)):
        return Streams(table_id=intent.table_id, ends=ends)
    now = StreamEnd(intent=intent, version=winner.version, rows=rows)
    return Streams(table_id=intent.table_id, ends={**ends, intent.stream: now})
