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
        self._read: dict[tuple[str, str], dict[str, Document]] = {}

    def record(self, spec: AnySpec, table_id: str) -> None:
        """Write the spec down, unless it is the last one that was written down of the table."""
        if self.is_latest(spec, table_id, spec.spec_hash):
            return
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
        self._read[table, table_id] = found
        return found

    def is_latest(self, spec: AnySpec, table_id: str, spec_hash: str) -> bool:
        """Whether the table's last batch, which followed `spec_hash`, and its last run followed this very spec.

        Written specs never change. So an earlier reading is enough for the answer "yes", and costs no request.
        """
        found = self._read.get((spec.table, table_id)) or {}
        if not _ends_with(found, spec_hash, document_of(spec)):
            found = self.of(spec.table, table_id)
        return _ends_with(found, spec_hash, document_of(spec))


def _ends_with(followed: dict[str, Document], spec_hash: str, document: Document) -> bool:
    return followed.get(spec_hash) == document == next(reversed(followed.values()), None)


def document_of(spec: AnySpec) -> Document:
    """The spec as plain values, all defaults stated."""
    return spec.model_dump(mode="json")
