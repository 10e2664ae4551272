"""A quarantine with many rows, some of which people have decided about, without Spark."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from deltalake import write_deltalake

from benchmarks.aged_lake import FIRST_DAY
from millrace.control.ledger.resolution import table_id
from millrace.control.quarantine.events import Decision, QuarantineEvents, RowEvent
from millrace.control.quarantine.waiting import recount_waiting
from millrace.paths import LakehousePaths

REASONS = tuple(f"expect_column_values_to_be_between(c{number}): c{number} is a percentage" for number in range(5))
_BATCHES, _FILES, _ONE_IN = 1000, 20, 50


def row_id(number: int) -> str:
    """Return the id of a row."""
    return hashlib.sha256(str(number).encode()).hexdigest()[:16]


def refuse(paths: LakehousePaths, table: str, number: int) -> None:
    """Put rows into the quarantine of a table, in 20 files; every fiftieth was discarded."""
    target, at_once = table_id(paths.table(table)), number // _FILES
    with recount_waiting(table, target, paths):
        for first in range(0, number, at_once):
            rows = _rows(range(first, first + at_once), number, target)
            write_deltalake(str(paths.quarantine(table)), rows, mode="append")
        ids = [row_id(each) for each in range(0, number, _ONE_IN)]
        decision = Decision("ann", "not needed", "run")
        QuarantineEvents(paths).record(RowEvent.DISCARDED, table, target, ids, decision)


def _rows(numbers: range, of: int, target: str) -> pa.Table:
    batches = [1 + number * _BATCHES // of for number in numbers]
    seen = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=batch) for batch in batches]
    records = [json.dumps({"n": number, "at": "2026-01-01T00:00:00Z"}) for number in numbers]
    return pa.table(
        {
            "record": records,
            "reasons": [[REASONS[number % len(REASONS)]] for number in numbers],
            "source": [f"a0/date=2026-01-01/{batch}.json" for batch in batches],
            "position": pa.array(numbers, pa.int64()),
            "_interval_start": [FIRST_DAY + timedelta(days=batch) for batch in batches],
            "_batch_seq": pa.array(batches, pa.int64()),
            "_table_id": [target] * len(numbers),
            "row_id": list(map(row_id, numbers)),
            "received": records,
            "first_seen": seen,
            "last_seen": seen,
        }
    )
