"""The columns that a document gives its table, and the settings that name them.

This check and its neighbours look at the document as it was read, not at the model, so that they
say what they can even where another part of the document does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from include.specs.problem import Finding, KeyPath, did_you_mean

Document = Mapping[str, Any]

_LISTS_OF_COLUMNS = ("keys", "sequence_by", "partitioned_by", "zorder_by")


def columns_of(document: Document) -> list[str] | None:
    """The columns that the document's table has; None where the document does not say them well."""
    parts = [document[key] for key in ("columns", "group_by", "measures") if key in document]
    if not parts or not all(isinstance(part, dict) for part in parts):
        return None
    return [str(name) for part in parts for name in part]


def unknown_column(path: KeyPath, name: object, columns: list[str], owner: str = "the table") -> Finding:
    """The finding that `owner` has no column `name`."""
    return Finding(path, f"{owner} has no such column", name, did_you_mean(name, columns))


def check_columns(document: Document) -> Iterator[Finding]:
    """Keys, sequence, partitions and Z-order name columns that the table has."""
    columns = columns_of(document)
    if columns is None:
        return
    for key in _LISTS_OF_COLUMNS:
        stated = document.get(key)
        for index, name in enumerate(stated if isinstance(stated, list) else ()):
            if isinstance(name, str) and name not in columns:
                yield unknown_column((key, index), name, columns)


def check_received(document: Document) -> Iterator[Finding]:
    """Bronze keeps columns as received: expressions over them belong to silver."""
    columns = document.get("columns")
    received = str(document.get("table", "")).startswith("bronze.") and isinstance(columns, dict)
    for name, column in columns.items() if received and isinstance(columns, dict) else ():
        if isinstance(column, dict) and "from" in column:
            message = "bronze keeps its columns as received"
            yield Finding(("columns", name, "from"), message, column["from"], "leave it out, and state it in silver")


def check_snapshot(document: Document) -> Iterator[Finding]:
    """A full snapshot has no order of its own and states no deletes: a missing key is one."""
    for key in ("sequence_by", "apply_as_deletes"):
        if document.get("snapshot") and document.get(key):
            message = "a full snapshot is ordered by its interval, and a key that is missing is a delete"
            yield Finding((key,), message, document[key], f"leave out {key}, or snapshot")
