"""Whether a table can do with what its maintenance is to take away."""

from __future__ import annotations

from collections.abc import Iterator

from include.specs.checks.columns import Document
from include.specs.problem import Finding

_TELLS_LATE_EVENTS = "this table tells late events by its deleted keys, and would put what it forgot in the wrong place"
_NEED_TOMBSTONES = {
    "snapshot": ("full", "a full snapshot leaves no tombstones: a key that is missing is deleted"),
    "stored_as_scd_type": (2, _TELLS_LATE_EVENTS),
    "ignore_null_updates": (True, _TELLS_LATE_EVENTS),
}
"""Key -> the value with which a table forgets no deleted key, and why."""


def check_tombstones(document: Document) -> Iterator[Finding]:
    """Deleted keys are forgotten only where nothing follows but that an older event inserts its key again."""
    maintenance = document.get("maintenance")
    stated = maintenance.get("tombstones") if isinstance(maintenance, dict) else None
    if not isinstance(stated, dict) or stated.get("retain") is None or not _is_silver(document):
        return
    path = ("maintenance", "tombstones", "retain")
    for key, (value, message) in _NEED_TOMBSTONES.items():
        if document.get(key) == value:
            fix = f"leave it out: deleted keys are then kept for ever; or leave out {key}"
            yield Finding(path, message, stated["retain"], fix)
            return
    if not document.get("apply_as_deletes"):
        fix = "state apply_as_deletes, or leave it out"
        yield Finding(path, "no event of this table deletes a key", stated["retain"], fix)


def _is_silver(document: Document) -> bool:
    return str(document.get("table")).startswith("silver.")
