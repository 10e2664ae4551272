"""The newest batches of a table with their row counts: a part of its state (ADR 25)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from millrace.contracts.interval import Instant, Interval
from millrace.contracts.job.report import RowCounts
from millrace.control.ledger.states.table_state import StatePart
from millrace.control.log.batch import Intent, Winner

MOST_BATCHES = 30


class BatchKind(StrEnum):
    """The purpose of a batch: new rows, quarantined rows, the rows of an earlier version, all rows anew, or fewer."""

    LOAD = "load"
    REPLAY = "replay"
    RESTORE = "restore"
    REBUILD = "rebuild"
    DELETION = "deletion"


class RecentBatch(BaseModel):
    """A closed batch.

    Attributes:
        stream: its stream.
        batch_seq: its number.
        version: the version that it committed.
        interval_start: the start of its interval.
        interval_end: the end of its interval.
        run_id: the run.
        at: when it was closed.
        rows: its row counts.
        token: its token.
        kind: what it did.
        restores: the version whose rows it put back; None for all other kinds.
    """

    model_config = ConfigDict(frozen=True)

    stream: str
    batch_seq: int
    version: int
    interval_start: Instant
    interval_end: Instant
    run_id: str
    at: Instant
    rows: RowCounts
    token: str
    kind: BatchKind = BatchKind.LOAD
    restores: int | None = None

    @property
    def interval(self) -> Interval:
        """Its interval."""
        return Interval(start=self.interval_start, end=self.interval_end)

    @property
    def is_of_command_line(self) -> bool:
        """Whether `lakehouse` made it, so that no orchestrator knows its run."""
        return self.run_id.startswith("cli__")


class RecentBatches(StatePart):
    """The newest closed batches of all streams of a table.

    Attributes:
        batches: at most `MOST_BATCHES` batches, in the order of their versions.
    """

    batches: tuple[RecentBatch, ...] = ()


def closed_batch(winner: Winner, rows: RowCounts, at: datetime) -> RecentBatch:
    """Return a batch that was closed at a time, with its row counts."""
    facts = winner.intent.model_dump(include=set(RecentBatch.model_fields))
    restores = winner.intent.sources.restores
    return RecentBatch(
        **facts, version=winner.version, at=at, rows=rows, kind=batch_kind(winner.intent), restores=restores
    )


def newest_batches(table_id: str, batches: Iterable[RecentBatch]) -> RecentBatches:
    """Return the newest of these batches; of one that was closed twice, the last close counts."""
    by_token = {batch.token: batch for batch in batches}
    ascending = sorted(by_token.values(), key=lambda batch: batch.version)
    return RecentBatches(table_id=table_id, batches=tuple(ascending[-MOST_BATCHES:]))


def batch_kind(intent: Intent) -> BatchKind:
    """Return the purpose of the batch of an intent."""
    sources = intent.sources
    if sources.rebuild:
        return BatchKind.REBUILD
    if sources.restores is not None:
        return BatchKind.RESTORE
    if sources.deletes:
        return BatchKind.DELETION
    return BatchKind.REPLAY if sources.replay else BatchKind.LOAD
