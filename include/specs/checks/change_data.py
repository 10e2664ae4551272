"""Whether the settings by which events become rows go together."""

from __future__ import annotations

from collections.abc import Iterator

from include.specs.checks.columns import Document, listed
from include.specs.problem import Finding

_TRACKED, _UNTRACKED = "track_history_column_list", "track_history_except_column_list"
_NOT_OF_SNAPSHOTS = ("sequence_by", "apply_as_deletes", "apply_as_truncates", "ignore_null_updates")


def check_snapshot(document: Document) -> Iterator[Finding]:
    """A full snapshot has no order of its own and states no deletes: a missing key is one."""
    for key in _NOT_OF_SNAPSHOTS:
        if document.get("snapshot") and document.get(key):
            message = "a full snapshot is ordered by its interval, and a key that is missing is a delete"
            yield Finding((key,), message, document[key], f"leave out {key}, or snapshot")


def check_history(document: Document) -> Iterator[Finding]:
    """What begins a period is said once, and of tables that have periods."""
    for key in (_TRACKED, _UNTRACKED):
        if document.get(key) and document.get("stored_as_scd_type") != 2:
            message = "only a table with history has periods that a change can begin"
            yield Finding((key,), message, document[key], "add `stored_as_scd_type: 2`, or leave it out")
    if document.get(_TRACKED) and document.get(_UNTRACKED):
        fix = f"leave out one of {_TRACKED} and {_UNTRACKED}"
        yield Finding((_UNTRACKED,), "what begins a period is said twice", document[_UNTRACKED], fix)


def check_truncates(document: Document) -> Iterator[Finding]:
    """A truncate is of tables that keep the last state alone, as in Spark's AutoCDC."""
    kept = "stored_as_scd_type: 2" if document.get("stored_as_scd_type") == 2 else "ignore_null_updates: true"
    if document.get("apply_as_truncates") and (document.get("ignore_null_updates") or "2" in kept):
        message = f"a truncate is for tables that keep the last state alone, and this one has {kept}"
        yield Finding(("apply_as_truncates",), message, document["apply_as_truncates"], "leave out one of the two")


def check_left_out(document: Document) -> Iterator[Finding]:
    """The table has its keys."""
    keys = listed(document, "keys")
    for index, name in enumerate(listed(document, "except_column_list")):
        if name in keys:
            yield Finding(("except_column_list", index), "a key identifies the table's rows", name, "leave it out")
