"""What all batches of a table have done together: a part of its state, from which the counters of metrics follow."""

from __future__ import annotations

from pydantic import Field

from millrace.contracts.job.report import RowCounts, total
from millrace.control.ledger.states.recent_batches import BatchKind, batch_kind
from millrace.control.ledger.states.table_state import StatePart
from millrace.control.log.batch import Winner


class Totals(StatePart):
    """The sums over all closed batches of a table; no number ever becomes smaller, until another table replaces it.

    Attributes:
        counted: stream -> the number of its last batch in these sums.
        batches: kind of batch -> the number of batches.
        rows: the row counts.
        files: the number of landing files that were loaded.
        seconds: the seconds from the intent of a batch to its close.
    """

    counted: dict[str, int] = Field(default_factory=dict)
    batches: dict[BatchKind, int] = Field(default_factory=dict)
    rows: RowCounts = RowCounts()
    files: int = 0
    seconds: float = 0.0

    def includes(self, winner: Winner) -> bool:
        """Whether the sums include the batch."""
        return winner.batch_seq <= self.counted.get(winner.intent.stream, 0)

    def is_next(self, winner: Winner) -> bool:
        """Whether the batch is the first of its stream that the sums lack."""
        return winner.batch_seq == self.counted.get(winner.intent.stream, 0) + 1


def add_batch(totals: Totals, winner: Winner, rows: RowCounts, seconds: float) -> Totals:
    """Return the totals with one more batch, which took these seconds."""
    intent, kind = winner.intent, batch_kind(winner.intent)
    return Totals(
        table_id=intent.table_id,
        counted={**totals.counted, intent.stream: max(winner.batch_seq, totals.counted.get(intent.stream, 0))},
        batches={**totals.batches, kind: totals.batches.get(kind, 0) + 1},
        rows=total([totals.rows, rows]),
        files=totals.files + intent.sources.files,
        seconds=totals.seconds + seconds,
    )
