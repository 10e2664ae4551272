"""Check that the settings of change data agree, and that the table can do without the tombstones that it deletes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from millrace.specs.checks.columns import declared_columns, unknown_column
from millrace.specs.document import Document, list_at, mapping_at
from millrace.specs.problem import Defect

_TRACKED, _UNTRACKED = "track_history_column_list", "track_history_except_column_list"
_NOT_OF_SEVERAL = {
    "snapshot": "a full snapshot of one source would delete the keys of the others",
    "apply_as_truncates": "a truncate of one source would delete the keys of the others",
}
"""Key -> why a table with a list of sources cannot have it."""

_NOT_OF_SNAPSHOTS = ("sequence_by", "apply_as_deletes", "apply_as_truncates", "ignore_null_updates")

_NEEDED_FOR_LATE_EVENTS = "this table needs its deleted keys to apply late events correctly"
_NEED_TOMBSTONES = {
    "snapshot": ("full", "a full snapshot leaves no tombstones: a missing key is deleted"),
    "stored_as_scd_type": (2, _NEEDED_FOR_LATE_EVENTS),
    "ignore_null_updates": (True, _NEEDED_FOR_LATE_EVENTS),
}
"""Key -> the value with which a table must keep its tombstones, and why."""


def check_snapshot(document: Document) -> Iterator[Defect]:
    """Refuse settings of order and deletes for a full snapshot, whose interval orders it and whose gaps are deletes."""
    for key in _NOT_OF_SNAPSHOTS:
        if document.get("snapshot") and document.get(key):
            message = "a full snapshot is ordered by its interval, and a missing key is a delete"
            yield Defect((key,), message, document[key], f"leave out {key}, or snapshot")


def check_sources(document: Document) -> Iterator[Defect]:
    """Check the list of sources: each once, with columns that the table has, and without what concerns all its rows."""
    sources, columns, tables = list_at(document, "sources"), declared_columns(document), list[object]()
    for index, source in enumerate(sources):
        if (table := source.get("table") if isinstance(source, dict) else None) in tables:
            yield Defect(("sources", index, "table"), "the list has this source already", table, "leave one out")
        tables += [table] if table else []
        for name in mapping_at(source, "columns"):
            if columns and name not in columns:
                yield unknown_column(("sources", index, "columns", name), name, columns)
    for key, message in _NOT_OF_SEVERAL.items():
        if sources and document.get(key):
            fix = f"write source, for one table; or leave out {key}"
            yield Defect((key,), message, document[key], fix)
    yield from _check_priority(document)


def _check_priority(document: Document) -> Iterator[Defect]:
    priority = document.get("source_priority")
    if priority and not list_at(document, "sources"):
        message, fix = "only a table with a list of sources has a source that can win", "write sources, or leave it out"
        yield Defect(("source_priority",), message, priority, fix)
    elif priority and document.get("stored_as_scd_type") == 2:
        message = "the periods of a history follow the sequence alone, whichever source an event came from"
        yield Defect(("source_priority",), message, priority, "leave it out, or stored_as_scd_type: 2")


def check_history(document: Document) -> Iterator[Defect]:
    """Check that the columns that begin a period are stated once, and only for tables with periods."""
    for key in (_TRACKED, _UNTRACKED):
        if document.get(key) and document.get("stored_as_scd_type") != 2:
            message = "only a table with history has periods that a change can begin"
            yield Defect((key,), message, document[key], "add `stored_as_scd_type: 2`, or leave it out")
    if document.get(_TRACKED) and document.get(_UNTRACKED):
        fix = f"leave out one of {_TRACKED} and {_UNTRACKED}"
        yield Defect((_UNTRACKED,), "the columns that begin a period are stated twice", document[_UNTRACKED], fix)


def check_truncates(document: Document) -> Iterator[Defect]:
    """Refuse truncates of tables that keep more than the last state, as Spark's AutoCDC does."""
    other = "stored_as_scd_type: 2" if document.get("stored_as_scd_type") == 2 else "ignore_null_updates: true"
    if document.get("apply_as_truncates") and (document.get("ignore_null_updates") or "2" in other):
        message = f"a truncate is for tables that keep only the last state, and this one has {other}"
        yield Defect(("apply_as_truncates",), message, document["apply_as_truncates"], "leave out one of the two")


def check_left_out(document: Document) -> Iterator[Defect]:
    """Check that the table stores its keys."""
    for index, name in enumerate(list_at(document, "except_column_list")):
        if name in list_at(document, "keys"):
            yield Defect(("except_column_list", index), "a key identifies the table's rows", name, "leave it out")


def check_tombstones(document: Document) -> Iterator[Defect]:
    """Refuse tombstone retention unless its only effect is that a late, older event inserts its key again."""
    retain = mapping_at(mapping_at(document, "maintenance"), "tombstones").get("retain")
    if retain is None or not str(document.get("table")).startswith("silver."):
        return
    path = ("maintenance", "tombstones", "retain")
    for key, (value, message) in _NEED_TOMBSTONES.items():
        if document.get(key) == value:
            fix = f"leave it out: deleted keys are then kept for ever; or leave out {key}"
            yield Defect(path, message, retain, fix)
            return
    if not any(each.get("apply_as_deletes") for each in (document, *_of_sources(document))):
        fix = "state apply_as_deletes, or leave it out"
        yield Defect(path, "no event of this table deletes a key", retain, fix)


def _of_sources(document: Document) -> list[dict[str, Any]]:
    return [source for source in list_at(document, "sources") if isinstance(source, dict)]
