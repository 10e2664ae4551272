"""The approval of deletes is for one batch, and valid until that batch is committed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from include.control.ledger.deletes import DeleteRecords, Deletes, next_allowed_version
from include.paths import LakehousePaths
from tests.support.ledger.delta_tables import day

DELETES = Deletes(
    table="silver.orders",
    table_id="id",
    interval_start=day(4).start,
    source="bronze.orders",
    source_id="source",
    source_version=7,
    keys=3,
    of_keys=4,
    samples=("order_id=o1",),
    why="the full snapshot lacks them",
)


def test_deletes_are_pending_until_a_person_allows_exactly_these(tmp_path: Path) -> None:
    records = DeleteRecords(LakehousePaths(tmp_path))
    records.record_asked(DELETES, "run")
    later = replace(DELETES, source_version=9)
    records.record_asked(later, "run")
    records.record_asked(DELETES, "the run again")
    records.record_allowed(DELETES, said_by="ann", reason="they are sold", run_id="approval")
    assert records.pending_deletes("silver.orders") == [later]
    assert records.allowed_deletes("silver.orders", "id", "source") == [DELETES]
    assert records.allowed_deletes("silver.orders", "another id", "source") == []
    assert records.allowed_deletes("silver.orders", "id", "another id") == []


def test_a_batch_ends_at_the_version_for_which_deletes_were_allowed() -> None:
    allowed = [DELETES, replace(DELETES, source_version=9)]
    assert [next_allowed_version(allowed, after, 12) for after in (None, 6, 7, 9)] == [7, 7, 9, 12]
    assert next_allowed_version(allowed, 6, 7) == 7
    assert next_allowed_version([], None, 3) == 3
