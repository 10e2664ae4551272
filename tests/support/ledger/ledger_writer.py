"""A process that records batches in the ledger at the same time as others."""

from __future__ import annotations

from pathlib import Path

from include.contracts.job.report import FileRows, RowCounts
from include.control.ledger.ledger import Ledger
from include.control.log.batch import FileFact, Stream, Winner
from include.paths import LakehousePaths
from tests.support.ledger.delta_tables import intent_of
from tests.support.processes import LineUp


def files_of(number: int, batch_seq: int) -> tuple[FileFact, ...]:
    """Return the two files of a batch of writer `number`."""
    names = (f"writer={number}/{batch_seq}-{part}.json" for part in "ab")
    return tuple(FileFact(path=name, size=batch_seq, mtime_ns=number, checksum=name) for name in names)


def record_batches(number: int, _: LineUp, root: Path, count: int) -> None:
    """Record intent, winner and closing of `count` batches of this writer's own stream."""
    ledger, stream = Ledger(LakehousePaths(root)), Stream("bronze.orders", f"writer-{number}")
    for batch_seq in range(1, count + 1):
        files = files_of(number, batch_seq)
        winner = Winner(intent_of("id", batch_seq, stream=stream), version=batch_seq)
        ledger.record_intent(winner.intent, files)
        ledger.record_committed([winner])
        ledger.record_closed(
            winner, RowCounts(read=1, applied=1), {file.path: FileRows(read=1, written=1) for file in files}
        )
