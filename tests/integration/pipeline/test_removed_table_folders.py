"""A table whose folder was removed is another table: what was left beside it of the earlier one takes no part."""

from __future__ import annotations

import shutil

from deltalake import DeltaTable

from include.contracts.row_status import RowStatus
from include.control.quarantine.rows import count_by_status
from include.control.quarantine.stored_rows import StoredRows
from include.errors import ExitCode, Outcome
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.lakehouse import Lakehouse, order, tombstones_path

BRONZE, SILVER = "bronze.orders", "silver.orders"
REFUSED = order(None, 1, 7)
"""Bronze takes it, silver refuses it: it has no key."""

RULE = {"expect_column_values_to_be_between": {"column": "amount", "min_value": 0}, "action": "quarantine"}


def delete(number: int, hour: int) -> dict[str, object]:
    return order(number, 1, hour, op="delete")


def state(shop: Lakehouse) -> None:
    columns = {**bronze_document()["columns"], "op": {"type": "string"}}
    shop.specs(
        bronze_document(columns=columns, expectations=[RULE]),
        silver_document(apply_as_deletes="op = 'delete'"),
    )


def load(shop: Lakehouse) -> None:
    for report in shop.run_all(1, BRONZE, SILVER):
        assert (report.exit_code, report.outcome) == (ExitCode.OK, Outcome.COMMITTED), report.message
        assert report.rows.are_conserved


def buried(shop: Lakehouse) -> list[str]:
    """The keys that the table of now has deleted."""
    rows = DeltaTable(str(tombstones_path(shop, SILVER))).to_pyarrow_table(columns=["order_id"])
    return sorted(rows["order_id"].to_pylist())


def test_what_lies_beside_a_table_that_was_removed_neither_hides_nor_replaces_anything(lakehouse: Lakehouse) -> None:
    state(lakehouse)
    events = [order(1, 5, 8), order(5, 5), delete(1, 9), delete(3, 9), REFUSED, order(9, -1, 8)]
    file = lakehouse.deliver(1, "day.json", events)
    load(lakehouse)
    assert (len(lakehouse.waiting(BRONZE)), len(lakehouse.waiting(SILVER))) == (1, 1)
    for table in (BRONZE, SILVER):
        shutil.rmtree(lakehouse.paths.table(table))
    # The same name, other content: o3 was never deleted, o2 was, and other rows are refused.
    file.unlink()
    lakehouse.deliver(
        1, "day.json", [order(2, 7, 8), delete(2, 9), order(3, 4, 8), REFUSED, order(None, 2, 7), order(8, -2, 8)]
    )

    load(lakehouse)

    assert lakehouse.rows(SILVER, "order_id", "amount") == [("o3", 4)], "an earlier table's delete is none of this one"
    assert buried(lakehouse) == ["o2"]
    assert count_by_status(StoredRows(SILVER, lakehouse.paths)) == {RowStatus.OPEN: 2}
    assert ["-2" in row.record for row in lakehouse.waiting(BRONZE)] == [True]
