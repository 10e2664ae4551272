"""A gate refuses for longer than Delta keeps the table's log, so that Delta cleans the log up in the meantime."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from include.contracts.job.report import JobReport
from include.control.gates.gates import Gates
from include.errors import Outcome
from spark_jobs.runtime.session import own_session
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order
from tests.support.ledger.delta_tables import commit_file

pytestmark = pytest.mark.slow

BRONZE, SILVER = "bronze.orders", "silver.orders"
FORTY_DAYS = 40 * 24 * 3600


@pytest.fixture
def shop(lakehouse: Lakehouse) -> Lakehouse:
    """The gate of bronze refuses a table of more than one row."""
    lakehouse.specs(bronze_document(expectations=[at_most(1)]))
    return lakehouse


def run(shop: Lakehouse, number: int) -> JobReport:
    """Load the order of a day into bronze."""
    return given(shop, BRONZE, [order(number, number)], number)


def at_most(rows: int) -> dict[str, Any]:
    return {"expect_table_row_count_to_be_between": {"max_value": rows}, "action": "fail", "reason": f"{rows} at most"}


def let_delta_clean_up(table: Path) -> None:
    """Let all that the log holds be forty days old, and Delta write a checkpoint, after which it cleans up."""
    then = time.time() - FORTY_DAYS
    for file in (table / "_delta_log").iterdir():
        os.utime(file, (then, then))
    with own_session({}) as session:
        session.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
        session.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('aged' = 'yes')")


def test_a_certificate_stays_and_a_later_version_is_certified_after_delta_has_cleaned_the_log(
    shop: Lakehouse,
) -> None:
    table = shop.paths.table(BRONZE)
    shop.specs(silver_document("silver.late"))
    certified = run(shop, 1).version
    assert certified is not None
    assert shop.run(SILVER, 1).outcome is Outcome.COMMITTED
    refused = run(shop, 2)
    assert refused.certified_version == certified
    let_delta_clean_up(table)
    assert not commit_file(table, certified + 1).exists(), "Delta has cleaned its log up"
    assert Gates(shop.paths).certified(BRONZE) == certified
    late = shop.run("silver.late", 1)
    assert late.outcome is Outcome.NOT_READY, "it has never read the certified version"
    assert f"version {certified} of {BRONZE} is certified, but cannot be read any more" in late.message
    still = run(shop, 3)
    assert (still.outcome, still.certified_version) == (Outcome.COMMITTED, certified)
    assert shop.run(SILVER, 3).outcome is Outcome.NO_OP
    shop.specs(bronze_document(expectations=[at_most(9)]))
    right = run(shop, 4)
    assert right.certified_version == right.version == Gates(shop.paths).certified(BRONZE)
    assert shop.run(SILVER, 4).rows.applied == 3, "orders 2 to 4"
