"""The columns that a document gives its table, and the settings that name them.

This check and its neighbours look at the document as it was read, not at the model, so that they
say what they can even where another part of the document does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from include.specs.problem import Finding, KeyPath, did_you_mean

Document = Mapping[str, Any]

_LISTS_OF_COLUMNS = ("keys", "sequence_by", "except_column_list")
_LISTS_OF_STORED = (
    "partitioned_by",
    "zorder_by",
    "track_history_column_list",
    "track_history_except_column_list",
)


def columns_of(document: Document) -> list[str] | None:
    """The columns that the document's table has; None where the document does not say them well."""
    parts = [document[key] for key in ("columns", "group_by", "measures") if key in document]
    if not parts or not all(isinstance(part, dict) for part in parts):
        return None
    return [str(name) for part in parts for name in part]


def stored_columns_of(document: Document) -> list[str] | None:
    """Those of the document's columns that the table has; None where the document does not say them well."""
    left_out = document.get("except_column_list")
    columns = columns_of(document)
    return [name for name in columns if name not in left_out] if columns and isinstance(left_out, list) else columns


def unknown_column(path: KeyPath, name: object, columns: list[str], owner: str = "the table") -> Finding:
    """The finding that `owner` has no column `name`."""
    return Finding(path, f"{owner} has no such column", name, did_you_mean(name, columns))


def check_columns(document: Document) -> Iterator[Finding]:
    """Keys, sequence, partitions and the like name columns that there are."""
    columns, stored = columns_of(document), stored_columns_of(document)
    if columns is None or stored is None:
        return
    for key, known in (*((key, columns) for key in _LISTS_OF_COLUMNS), *((key, stored) for key in _LISTS_OF_STORED)):
        for index, name in enumerate(listed(document, key)):
            if isinstance(name, str) and name not in known:
                yield unknown_column((key, index), name, known)


def check_received(document: Document) -> Iterator[Finding]:
    """Bronze keeps columns as received: expressions over them belong to silver."""
    columns = document.get("columns")
    received = str(document.get("table", "")).startswith("bronze.") and isinstance(columns, dict)
    for name, column in columns.items() if received and isinstance(columns, dict) else ():
        if isinstance(column, dict) and column.get("from") is not None:
            message = "bronze keeps its columns as received"
            yield Finding(("columns", name, "from"), message, column["from"], "leave it out, and state it in silver")


def listed(document: Document, key: str) -> list[Any]:
    """What the document lists under a key; nothing where it is no list."""
    stated = document.get(key)
    return stated if isinstance(stated, list) else []
