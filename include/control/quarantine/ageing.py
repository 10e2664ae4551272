"""Rows that have waited in quarantine for longer than their table's spec wants them to."""

from __future__ import annotations

from datetime import datetime

from include.contracts.spec.duration import RETENTION
from include.contracts.spec.table_spec import AnySpec, GoldSpec
from include.control.quarantine.rows import waiting_since_before
from include.paths import LakehousePaths


def ageing_note(spec: AnySpec, paths: LakehousePaths, now: datetime) -> tuple[str, ...]:
    """A remark where rows of the table wait since before `quarantine.warn_after`; nobody settled them."""
    if isinstance(spec, GoldSpec):
        return ()
    limit = now - RETENTION.parse(spec.quarantine.warn_after)
    rows, first = waiting_since_before(spec.table, paths, limit)
    if first is None:
        return ()
    return (
        f"{rows:,} rows of {spec.table} wait in quarantine for more than {spec.quarantine.warn_after}, the first "
        f"since {first:%Y-%m-%d}: lakehouse quarantine show {spec.table}, then fix, replay or discard them",
    )
