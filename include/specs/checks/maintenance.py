"""Check that a table can do without the tombstones that its maintenance deletes."""

from __future__ import annotations

from collections.abc import Iterator

from include.specs.document import Document, mapping_at
from include.specs.problem import Defect

_NEEDED_FOR_LATE_EVENTS = "this table needs its deleted keys to apply late events correctly"
_NEED_TOMBSTONES = {
    "snapshot": ("full", "a full snapshot leaves no tombstones: a missing key is deleted"),
    "stored_as_scd_type": (2, _NEEDED_FOR_LATE_EVENTS),
    "ignore_null_updates": (True, _NEEDED_FOR_LATE_EVENTS),
}
"""Key -> the value with which a table must keep its tombstones, and why."""


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
    if not document.get("apply_as_deletes"):
        fix = "state apply_as_deletes, or leave it out"
        yield Defect(path, "no event of this table deletes a key", retain, fix)
