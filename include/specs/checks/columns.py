"""The columns that a document declares, and checks of the settings that name them.

All checks in this folder read the document, not the model, so that they also work if another part of it is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

from include.specs.document import Document, list_at, mapping_at
from include.specs.problem import Defect, KeyPath, did_you_mean

_LISTS_OF_COLUMNS = ("keys", "sequence_by", "except_column_list")
_LISTS_OF_STORED = ("partitioned_by", "zorder_by", "track_history_column_list", "track_history_except_column_list")


def declared_columns(document: Document) -> list[str] | None:
    """Return the columns that the document declares; None if its declarations are wrong."""
    parts = [document[key] for key in ("columns", "group_by", "measures") if key in document]
    if not parts or not all(isinstance(part, dict) for part in parts):
        return None
    return [str(name) for part in parts for name in part]


def stored_columns_in(document: Document) -> list[str] | None:
    """Return the declared columns that the table stores; None if the document's declarations are wrong."""
    excluded = document.get("except_column_list")
    columns = declared_columns(document)
    return [name for name in columns if name not in excluded] if columns and isinstance(excluded, list) else columns


def unknown_column(path: KeyPath, name: object, columns: list[str], owner: str = "the table") -> Defect:
    """Return the defect that `owner` has no column `name`."""
    return Defect(path, f"{owner} has no such column", name, did_you_mean(name, columns))


def check_columns(document: Document) -> Iterator[Defect]:
    """Check that keys, sequence, partitions and similar settings name existing columns."""
    columns, stored = declared_columns(document), stored_columns_in(document)
    if columns is None or stored is None:
        return
    for key, existing in (*((key, columns) for key in _LISTS_OF_COLUMNS), *((key, stored) for key in _LISTS_OF_STORED)):
        for index, name in enumerate(list_at(document, key)):
            if isinstance(name, str) and name not in existing:
                yield unknown_column((key, index), name, existing)


def check_received(document: Document) -> Iterator[Defect]:
    """Refuse expressions in bronze, which keeps its columns as received."""
    is_bronze = str(document.get("table", "")).startswith("bronze.")
    for name, column in mapping_at(document, "columns").items() if is_bronze else ():
        if isinstance(column, dict) and column.get("from") is not None:
            message = "bronze keeps its columns as received"
            yield Defect(("columns", name, "from"), message, column["from"], "leave it out, and state it in silver")


def check_kafka(document: Document) -> Iterator[Defect]:
    """Find transforms of columns that the table does not have, and columns that raw bytes cannot provide."""
    source, columns = mapping_at(document, "source"), mapping_at(document, "columns")
    if "kafka" not in source or not columns:
        return
    transforms = mapping_at(source, "transforms")
    for name in (name for name in transforms if name not in columns):
        fix = f"{did_you_mean(name, columns)} A transform fills a column that `columns` declares"
        yield Defect(("source", "transforms", name), "the table has no such column", transforms[name], fix)
    if source.get("format") == "raw":
        for name in (name for name in columns if name not in {"value", *transforms}):
            fix = "add an expression for it to source.transforms, or name it `value` to keep the bytes"
            yield Defect(("columns", name), "raw bytes have no fields", name, fix)
