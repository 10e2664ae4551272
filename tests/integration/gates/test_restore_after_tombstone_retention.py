"""A refused version is restored in a table whose tombstones were deleted before or after it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from include.contracts.job.args import Job
from include.contracts.job.report import JobReport
from include.errors import ExitCode, Outcome
from tests.support.documents.specs import Document, bronze_document, gold_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, copy_lakehouse, order
from tests.support.silver.refusing_gate import BRONZE, GOLD, SILVER, content, load_into_bronze, silver

pytestmark = pytest.mark.slow

HOUR = timedelta(hours=1)


def forgetting(most_rows: int, on_refusal: str = "restore") -> Document:
    retained = {"tombstones": {"retain": "1 hours"}}
    return silver(most_rows, on_refusal=on_refusal, maintenance=retained)


def deleted(shop: Lakehouse) -> object:
    return content(shop)["deleted"]


def vacuum(shop: Lakehouse, at: datetime) -> JobReport:
    report = shop.run(SILVER, 2, Job.TABLE_VACUUM, at)
    assert report.exit_code is ExitCode.OK, report.message
    return report


@pytest.fixture(scope="module")
def made(shared: Lakehouse) -> Lakehouse:
    """Two days of orders, the second one in bronze alone; o9 was deleted by the first one, o2 will be."""
    shared.specs(bronze_document(), forgetting(2), gold_document())
    load_into_bronze(shared, 1)
    given(shared, BRONZE, [order(9, 0)], 1)
    assert [report.certified_version for report in shared.run_all(1, SILVER, GOLD)] == [1, 1]
    load_into_bronze(shared, 2)
    assert deleted(shared) == ["o9"]
    return shared


@pytest.fixture
def shop(made: Lakehouse, tmp_path: Path) -> Lakehouse:
    """That lakehouse, for one test."""
    return copy_lakehouse(made, tmp_path / "shop")


def test_tombstones_deleted_before_the_refused_version_stay_deleted(shop: Lakehouse) -> None:
    vacuum(shop, datetime.now(UTC) + 2 * HOUR)
    before = content(shop)
    assert before["deleted"] == []
    refused = shop.run(SILVER, 2)
    assert refused.message.endswith("has the rows of version 1. The next run reads the refused batches again.")
    assert content(shop) == before
    shop.specs(forgetting(3))
    assert shop.run(SILVER, 2).certified_moved
    assert deleted(shop) == ["o2"]


@pytest.mark.faults
def test_tombstones_deleted_after_it_are_restored_and_the_next_vacuum_deletes_them(shop: Lakehouse) -> None:
    shop.specs(forgetting(2, on_refusal="keep"))
    between, before = datetime.now(UTC), content(shop)
    assert shop.run(SILVER, 2).certified_version == 1
    assert vacuum(shop, between + HOUR).details["tombstones"]["keys"] == 1
    assert deleted(shop) == ["o2"], "o9 was forgotten, o2 is too young"

    shop.specs(forgetting(2))
    assert "version 3 has the rows of version 1" in shop.run(SILVER, 2).message

    assert content(shop) == before, "the refused version's own tombstone is gone, the one of before it is there"
    assert vacuum(shop, between + HOUR).outcome is Outcome.COMMITTED
    assert deleted(shop) == []
    shop.specs(forgetting(3))
    reports = shop.run_all(2, SILVER, GOLD)
    assert [report.outcome for report in reports] == [Outcome.COMMITTED] * 2
    assert shop.rows(SILVER, "order_id", "amount") == [("o1", 10), ("o3", 3), ("o4", 4)]
    assert deleted(shop) == ["o2"]
