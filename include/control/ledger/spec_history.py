"""`ops.specs`: the specs that batches followed, append-only, so that a change can be named and not only noticed.

A batch says by `spec_hash` which one it followed.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pyarrow as pa

from include.contracts.spec.table_spec import AnySpec
from include.control.ledger.ops_table import OpsTable
from include.paths import LakehousePaths

SPECS = pa.schema(
    [
        ("recorded_at", pa.timestamp("us", tz="UTC")),
        ("table", pa.string()),
        ("table_id", pa.string()),
        ("spec_hash", pa.string()),
        ("spec", pa.string()),
    ]
)

Document = dict[str, Any]


class SpecHistory:
    """Reads and writes `ops.specs` of one lakehouse."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._events = OpsTable.of(paths, "specs", SPECS)

    def record(self, spec: AnySpec, table_id: str) -> None:
        """Write the spec down, unless it is the last one that was written down of the table."""
        text = json.dumps(document_of(spec), sort_keys=True)
        known = self._events.events(spec.table, ("spec",), table_id=table_id)
        if known and known[-1]["spec"] == text:
            return
        event = {"table": spec.table, "table_id": table_id, "spec_hash": spec.spec_hash, "spec": text}
        key = f"{table_id}/{len(known)}/{hashlib.sha256(text.encode()).hexdigest()}"
        self._events.append_once([event], key)

    def of(self, table: str, table_id: str) -> dict[str, Document]:
        """spec_hash -> the spec as a document, for every one that was written down of the table.

        The last one is that of the last run, whether it had anything to load or not.
        """
        found: dict[str, Document] = {}
        for row in self._events.events(table, ("spec_hash", "spec"), table_id=table_id):
            found.pop(row["spec_hash"], None)
            found[row["spec_hash"]] = json.loads(row["spec"])
        return found


def document_of(spec: AnySpec) -> Document:
    """The spec as plain values, all defaults stated."""
    return spec.model_dump(mode="json")
