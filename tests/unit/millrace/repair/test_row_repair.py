"""Which deletions and replacements are refused before any row is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from millrace.catalog import load_catalog
from millrace.contracts.job.requests import RepairRequest
from millrace.contracts.restricted import NOTHING_RESTRICTED, RestrictedColumns
from millrace.control.ops_tables import OpsTables
from millrace.errors import RepairError
from millrace.paths import LakehousePaths
from millrace.repair.row_repair import asked_row_repair
from tests.support.documents.specs import bronze_document, bronze_spec, gold_document, silver_document, write_specs
from tests.support.ledger.delta_tables import load_batch

RESTRICTED = RestrictedColumns(frozenset({"n"}), frozenset({"n"}))


def asked(folder: Path, table: str, where: str, restricted: RestrictedColumns = NOTHING_RESTRICTED) -> str:
    """Return the message by which a deletion is refused; empty if it is not."""
    tables = write_specs(folder / "tables", bronze_document(), silver_document(), gold_document())
    ops = OpsTables(LakehousePaths(folder / "lake"))
    try:
        asked_row_repair(table, RepairRequest(where=where), load_catalog(tables), ops, restricted)
    except RepairError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("where", "cause"),
    [
        ("n > (SELECT 1)", "SELECT is a word of queries"),
        ("n > rand()", "the function rand is not for single rows"),
        ("n < unix_timestamp(now())", "now "),
        ("m > 1", "there is no column 'm'\n"),
        ("n = 1", "n is restricted"),
        ("1 = 1", "it names no column"),
        ("n > 1; DROP", "the character ';' is not allowed"),
        ("n >", "it cannot be read"),
    ],
)
def test_a_condition_that_is_more_than_one_row_says_is_refused(tmp_path: Path, where: str, cause: str) -> None:
    load_batch(tmp_path / "lake", bronze_spec())
    assert cause in asked(tmp_path, "bronze.orders", where, RESTRICTED)


def test_gold_would_get_its_rows_back(tmp_path: Path) -> None:
    load_batch(tmp_path / "lake", bronze_spec())
    assert asked(tmp_path, "gold.revenue_daily", "orders = 1").startswith(
        "gold.revenue_daily is computed from silver.orders, and would get the rows back\nDelete or replace"
    )
    assert asked(tmp_path, "bronze.orders", "n > 1 AND n < 5") == ""
