"""A Delta writer in plain Python with Spark's rules for `txn`, so that thousands of commits can race in seconds.

It writes real Delta logs and Parquet files. Its rules are those of Spark 4.1 with Delta 4.4. A write whose txnVersion
is recorded already is skipped silently. If another commit took the version, the write is repeated on top of it, but a
commit with the same appId raises ConcurrentTransactionException. An atomic hard link creates a commit file.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

TXN = "spark.databricks.delta.write."
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
Pause = Callable[[str], None]


class ConcurrentTransactionException(Exception):
    """Raised when another commit of the same appId came after this transaction had begun."""


@dataclass(frozen=True)
class Session:
    """The settings of one write, and a function that may interrupt it."""

    conf: dict[str, str]
    pause: Pause

    def append(self, table: Path, rows: list[str]) -> None:
        """Append rows (column `source`) in one transaction, by the txn rules of Delta."""
        app_id, number = self.conf[f"{TXN}txnAppId"], int(self.conf[f"{TXN}txnVersion"])
        version, recorded = snapshot(table, app_id)
        if recorded >= number:
            return
        self.pause("transaction open")
        add = _write_parquet(table, rows)
        self.pause("data written")
        actions = [
            {
                "commitInfo": {
                    "timestamp": int(time.time() * 1000),
                    "operation": "WRITE",
                    "operationMetrics": {"numOutputRows": str(len(rows))},
                    "userMetadata": self.conf[USER_METADATA],
                }
            },
            {"txn": {"appId": app_id, "version": number}},
            {"add": add},
        ]
        while not _put_if_absent(table, version + 1, actions):
            version += 1
            if app_id in _txns(table, version):
                raise ConcurrentTransactionException(app_id)
        self.pause("committed")


def session_opener(pause: Pause) -> Callable[[dict[str, str]], object]:
    """Return the function by which `BatchWriter` opens sessions."""

    @contextmanager
    def open_session(conf: dict[str, str]) -> Iterator[Session]:
        yield Session(conf, pause)

    return open_session


def create_table(table: Path) -> None:
    """Create an empty Delta table with one column, `source`."""
    schema = {"type": "struct", "fields": [{"name": "source", "type": "string", "nullable": True, "metadata": {}}]}
    meta = {
        "id": str(uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": [],
        "configuration": {},
    }
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    (table / "_delta_log").mkdir(parents=True)
    _put_if_absent(
        table, 0, [{"commitInfo": {"operation": "CREATE TABLE"}}, {"protocol": protocol}, {"metaData": meta}]
    )


def snapshot(table: Path, app_id: str) -> tuple[int, int]:
    """Return the newest version, and the txnVersion recorded for the appId (0 for none)."""
    version, recorded = 0, 0
    while (table / "_delta_log" / f"{version:020d}.json").exists():
        recorded = max(recorded, _txns(table, version).get(app_id, 0))
        version += 1
    return version - 1, recorded


def _txns(table: Path, version: int) -> dict[str, int]:
    lines = (table / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    return {txn["appId"]: txn["version"] for line in lines if (txn := json.loads(line).get("txn"))}


def _write_parquet(table: Path, rows: list[str]) -> dict[str, object]:
    name = f"part-{uuid4().hex}.parquet"
    pq.write_table(pa.table({"source": rows}), table / name)
    return {
        "path": name,
        "partitionValues": {},
        "size": (table / name).stat().st_size,
        "modificationTime": int(time.time() * 1000),
        "dataChange": True,
        "stats": json.dumps({"numRecords": len(rows)}),
    }


def _put_if_absent(table: Path, version: int, actions: list[dict[str, object]]) -> bool:
    partial = table / "_delta_log" / f".{uuid4().hex}.tmp"
    partial.write_text("\n".join(json.dumps(action) for action in actions))
    try:
        os.link(partial, table / "_delta_log" / f"{version:020d}.json")
    except FileExistsError:
        return False
    finally:
        partial.unlink()
    return True
