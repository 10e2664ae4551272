"""`ops.specs`: the specs that batches used, append-only, so that a change of a spec can be described.

The `spec_hash` of a batch refers to its spec.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from millrace.contracts.spec.table_spec import AnySpec, model_of
from millrace.contracts.spec.value_reading import VALUE_RULE
from millrace.control.ledger.ops_table import OpsTable
from millrace.paths import LakehousePaths

SPECS = pa.schema(
    [
        ("recorded_at", pa.timestamp("us", tz="UTC")),
        ("table", pa.string()),
        ("table_id", pa.string()),
        ("spec_hash", pa.string()),
        ("spec", pa.string()),
    ]
)

RULE = "value_rule"
"""The key of a document for the rule by which values are read; without it, it was the one of an earlier Millrace."""

Document = dict[str, Any]


class SpecHistory:
    """Reads and writes `ops.specs` of one lakehouse."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._events = OpsTable.of(paths, "specs", SPECS)
        self._read: dict[tuple[str, str], dict[str, Document]] = {}

    def record(self, spec: AnySpec, table_id: str) -> None:
        """Record the spec, unless it is the last recorded spec of the table."""
        if self.is_latest(spec, table_id, spec.spec_hash):
            return
        text = json.dumps(document_of(spec))
        recorded = self._events.events(spec.table, ("spec",), table_id=table_id)
        if recorded and recorded[-1]["spec"] == text:
            return
        event = {"table": spec.table, "table_id": table_id, "spec_hash": spec.spec_hash, "spec": text}
        key = f"{table_id}/{len(recorded)}/{hashlib.sha256(text.encode()).hexdigest()}"
        self._events.append_once([event], key)

    def of(self, table: str, table_id: str) -> dict[str, Document]:
        """Return the recorded specs of the table as documents, by `spec_hash`, with the settings that specs have now.

        The last document is the spec of the last run, even if that run loaded nothing.
        """
        documents: dict[str, Document] = {}
        for row in self._events.events(table, ("spec_hash", "spec"), table_id=table_id):
            documents.pop(row["spec_hash"], None)
            documents[row["spec_hash"]] = _with_new_settings(table, json.loads(row["spec"]))
        self._read[table, table_id] = documents
        return documents

    def spec(self, table: str, table_id: str, spec_hash: str) -> AnySpec | None:
        """Return a recorded spec; None if there is no record of it, or this Millrace refuses it."""
        recorded = self.of(table, table_id).get(spec_hash)
        return _spec_of(table, recorded) if recorded else None

    def is_latest(self, spec: AnySpec, table_id: str, spec_hash: str) -> bool:
        """Whether the last batch of the table, which used the spec `spec_hash`, and its last run used this spec.

        Recorded specs never change. So a yes needs no new read, which would cost a request.
        """
        document, documents = document_of(spec), self._read.get((spec.table, table_id)) or {}
        return _ends_with(documents, spec_hash, document) or _ends_with(
            self.of(spec.table, table_id), spec_hash, document
        )


def _ends_with(documents: dict[str, Document], spec_hash: str, document: Document) -> bool:
    return documents.get(spec_hash) == document == next(reversed(documents.values()), None)


def _with_new_settings(table: str, recorded: Document) -> Document:
    """Return a recorded spec with the defaults of the settings that did not exist when it was recorded.

    Otherwise each table would seem to have another spec after an upgrade that brings a setting. A spec that would be
    refused now is returned as it was recorded.
    """
    if (spec := _spec_of(table, recorded)) is None:
        return recorded
    rule = {RULE: recorded[RULE]} if RULE in recorded else {}
    return {**spec.model_dump(mode="json"), **rule}


def _spec_of(table: str, recorded: Document) -> AnySpec | None:
    settings = {key: value for key, value in recorded.items() if key != RULE}
    try:
        return model_of(table.partition(".")[0], settings).model_validate(settings)
    except ValidationError:
        return None


def document_of(spec: AnySpec) -> Document:
    """Return the spec as plain values, with all defaults, and the rule by which values are read if that matters."""
    rule = {RULE: VALUE_RULE} if spec.converted_columns else {}
    return {**spec.model_dump(mode="json"), **rule}
