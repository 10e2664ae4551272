"""Silver tables that read their source in bounded batches, on real Delta: the same rows as in one."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.contracts.job.args import Job
from millrace.control.log.delta_log import remaining_commits
from millrace_spark.jobs import silver_merge
from millrace_spark.runtime.context import JobContext
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, order, tombstones_path

pytestmark = pytest.mark.slow

BRONZE, SILVER = "bronze.orders", "silver.orders"
DAYS = {
    1: [order(1, 5, 1), order(2, 7, 2), order(3, -1, 2)],
    2: [order(1, 6, 2, of_day=2), order(2, None, 4, of_day=2, op="delete")],
    3: [order(1, 4, 1), order(4, 9, 9, of_day=3), order(2, 7, 2)],
    4: [order(2, 9, 6, of_day=4), order(5, 3, 3, of_day=4), order(4, 9, 9, of_day=3)],
    5: [order(6, 1, 1, of_day=5)],
}
LAST_STATES = {"apply_as_deletes": "op = 'delete'"}
HISTORY = {
    **LAST_STATES,
    "stored_as_scd_type": 2,
    "sequence_by": ["event_at"],
    "except_column_list": ["event_at", "event_seq"],
}
SNAPSHOT = {"snapshot": "full"}


def state(lakehouse: Lakehouse, **changes: Any) -> None:
    silver = silver_document(expectations=[AT_LEAST_0], **changes)
    if changes.get("snapshot"):
        del silver["sequence_by"]
    columns = {**bronze_document()["columns"], "op": {"type": "string"}}
    lakehouse.specs(bronze_document(columns=columns), silver)
    (lakehouse.folder / "tables/gold/shop/revenue_daily.yaml").unlink(missing_ok=True)


def rows(lakehouse: Lakehouse) -> list[tuple[Any, ...]]:
    return lakehouse.rows(SILVER, "order_id", "amount", "_content_hash")


def batches(lakehouse: Lakehouse) -> list[tuple[int | None, int]]:
    commits = remaining_commits(lakehouse.paths.table(SILVER), None)
    return [tuple(commit.metadata["sources"]["ranges"][BRONZE]) for commit in commits if commit.txns]


@pytest.mark.parametrize(
    "kind", [LAST_STATES, *(pytest.param(kind, marks=pytest.mark.faults) for kind in (HISTORY, SNAPSHOT))]
)
def test_bounded_batches_end_in_the_rows_of_a_single_batch_also_when_a_run_is_asked_to_end(
    lakehouse: Lakehouse, kind: dict[str, Any]
) -> None:
    state(lakehouse, **kind, max_rows_per_batch=1)
    for number, events in DAYS.items():
        given(lakehouse, BRONZE, events, number)
    at_once = lakehouse.run(SILVER, 5, reprocess=True)
    assert batches(lakehouse) == [(None, 5)], "whoever reprocesses reads all new versions in one batch"
    wanted, refused = rows(lakehouse), sorted(row["record"] for row in lakehouse.quarantine(SILVER))
    assert refused, "a row was refused"
    for table in (
        lakehouse.paths.table(SILVER),
        lakehouse.paths.quarantine(SILVER),
        tombstones_path(lakehouse, SILVER),
    ):
        if table.exists():
            table.rename(table.with_name(f"{table.name}.at_once"))

    state(lakehouse, **kind, max_rows_per_batch=5)
    context = JobContext(lakehouse.args(SILVER, 5), is_to_stop=lambda: True)
    assert silver_merge.run(context).job == Job.SILVER_MERGE.value
    assert batches(lakehouse) == [(None, 2)], "it stops after its batch"
    report = lakehouse.run(SILVER, 5)

    assert batches(lakehouse) == [(None, 2), (2, 3), (3, 5)]
    assert "2 batches" in report.message
    assert rows(lakehouse) == wanted
    assert sorted(row["record"] for row in lakehouse.quarantine(SILVER)) == refused
    assert at_once.rows.quarantined == len(refused)
    assert report.certified_version == report.version
    assert lakehouse.run(SILVER, 5).outcome.value == "no_op"
