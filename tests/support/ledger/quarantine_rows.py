"""Quarantine tables written by delta-rs, for tests that need no Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from millrace.control.ledger.resolution import table_id as id_of
from millrace.control.log.batch import Intent
from millrace.paths import LakehousePaths

FIRST = datetime(2013, 1, 1, tzinfo=UTC)
SEEN = datetime(2026, 1, 1, tzinfo=UTC)
_TIME = pa.timestamp("us", tz="UTC")
COLUMNS = pa.schema(
    [
        ("record", pa.string()),
        ("reasons", pa.list_(pa.string())),
        ("source", pa.string()),
        ("position", pa.int64()),
        ("_interval_start", _TIME),
        ("_batch_seq", pa.int64()),
        ("_table_id", pa.string()),
        ("row_id", pa.string()),
        ("received", pa.string()),
        ("first_seen", _TIME),
        ("last_seen", _TIME),
    ]
)


def refused(number: int, *reasons: str, of_day: int = 1, **more: Any) -> dict[str, Any]:
    """Return a refused row with the id `r<number>`."""
    return {
        "record": f'{{"order_id":"o{number}"}}',
        "reasons": list(reasons),
        "source": None,
        "position": None,
        "_interval_start": FIRST + timedelta(days=of_day - 1),
        "_batch_seq": of_day,
        "row_id": f"r{number}",
        "received": f'{{"order_id":"o{number}","_source_file":"a.json"}}',
        "first_seen": SEEN + timedelta(days=of_day - 1),
        "last_seen": SEEN + timedelta(days=of_day - 1),
        **more,
    }


def quarantine(
    paths: LakehousePaths, table: str, *rows: dict[str, Any], table_id: str = "", by: Intent | None = None
) -> str:
    """Append rows to the quarantine of a table, create the table if necessary, and return its id.

    The rows belong to `table_id`, by default to the existing table; the commit is that of the batch `by`.
    """
    if not DeltaTable.is_deltatable(str(paths.table(table))):
        DeltaTable.create(str(paths.table(table)), pa.schema([("n", pa.int64())]))
    target = id_of(paths.table(table))
    owned = [{**row, "_table_id": table_id or target} for row in rows]
    commit = CommitProperties(custom_metadata={"userMetadata": by.user_metadata()}) if by else None
    new_rows = pa.Table.from_pylist(owned, COLUMNS)
    write_deltalake(paths.quarantine(table), new_rows, mode="append", commit_properties=commit)
    return target
