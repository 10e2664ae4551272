"""One append-only table of the ledger, written and read by delta-rs only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random_exponential


@dataclass(frozen=True)
class OpsTable:
    """Events of one kind, partitioned by the table that they are about."""

    path: Path
    schema: pa.Schema

    # delta-rs rebases appends itself; what is left is the race of two writers that create the table.
    @retry(
        retry=retry_if_exception_type(CommitFailedError),
        stop=stop_after_attempt(8),
        wait=wait_random_exponential(multiplier=0.05, max=1),
        reraise=True,
    )
    def append(self, events: Sequence[dict[str, Any]]) -> None:
        """Append `events` in one commit; nothing is written for none."""
        if not events:
            return
        rows = pa.Table.from_pylist(list(events), schema=self.schema)
        write_deltalake(str(self.path), rows, mode="append", partition_by=["table"])

    def events(self, table: str, **equals: str) -> list[dict[str, Any]]:
        """The events about `table` whose columns equal `equals`, oldest first."""
        try:
            delta = DeltaTable(str(self.path))
        except TableNotFoundError:
            return []
        filters = [("table", "=", table), *((column, "=", value) for column, value in equals.items())]
        rows = delta.to_pyarrow_table(filters=filters).to_pylist()
        return sorted(rows, key=lambda row: row["recorded_at"])
