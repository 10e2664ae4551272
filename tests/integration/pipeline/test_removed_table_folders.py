"""A table whose folder was removed is another table: what was left beside it of the earlier one takes no part."""

from __future__ import annotations

import shutil

from deltalake import DeltaTable

from millrace.contracts.row_status import RowStatus
from millrace.control.quarantine.rows import count_by_status
from millrace.control.quarantine.stored_rows import StoredRows
from millrace.errors import Outcome
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order, tombstones_path

BRONZE, SILVER = "bronze.orders", "silver.orders"
REFUSED = order(None, 1, 7)
"""Bronze takes it, silver refuses it: it has no key."""


def delete(number: int, hour: int) -> dict[str, object]:
    return order(number, 1, hour, op="delete")


def buried(shop: Lakehouse) -> list[str]:
    """The keys that the table of now has deleted."""
    rows = DeltaTable(str(tombstones_path(shop, SILVER))).to_pyarrow_table(columns=["order_id"])
    return sorted(rows["order_id"].to_pylist())


def test_what_lies_beside_a_table_that_was_removed_neither_hides_nor_replaces_anything(lakehouse: Lakehouse) -> None:
    columns = {**bronze_document()["columns"], "op": {"type": "string"}}
    lakehouse.specs(bronze_document(columns=columns), silver_document(apply_as_deletes="op = 'delete'"))
    given(lakehouse, BRONZE, [order(1, 5, 8), order(5, 5), delete(1, 9), delete(3, 9), REFUSED], name="day.json")
    assert lakehouse.run(SILVER).rows.quarantined == 1
    assert buried(lakehouse) == ["o1", "o3"]
    for table in (BRONZE, SILVER):
        shutil.rmtree(lakehouse.paths.table(table))
    # The same name, other content: o3 was never deleted, o2 was, and another row is refused, too.
    lakehouse.deliver(1, "day.json", [order(2, 7, 8), delete(2, 9), order(3, 4, 8), REFUSED, order(None, 2, 7)])

    assert [report.outcome for report in lakehouse.run_all(1, BRONZE, SILVER)] == [Outcome.COMMITTED] * 2

    assert lakehouse.rows(SILVER, "order_id", "amount") == [("o3", 4)], "an earlier table's delete is none of this one"
    assert buried(lakehouse) == ["o2"]
    assert count_by_status(StoredRows(SILVER, lakehouse.paths)) == {RowStatus.OPEN: 2}
