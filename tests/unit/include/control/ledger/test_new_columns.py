"""The decisions about fields without a declared column."""

from __future__ import annotations

from pathlib import Path

from include.control.ledger.new_columns import OPEN, ColumnState, NewColumns
from include.paths import LakehousePaths

ORDERS = "bronze.orders"
PROPOSED, ASKED, APPROVED, REFUSED = ColumnState


def test_the_last_event_of_a_column_counts_and_an_approval_is_final_since_the_table_has_the_column(
    tmp_path: Path,
) -> None:
    columns = NewColumns(LakehousePaths(tmp_path))
    assert columns.of(ORDERS) == []
    columns.record(PROPOSED, ORDERS, ["colour", "shop"], run_id="monday")
    columns.record(ASKED, ORDERS, ["colour"], run_id="question")
    columns.record(REFUSED, ORDERS, ["colour"], run_id="question", said_by="ann")
    states = [(column.name, column.state, column.run_id, column.said_by) for column in columns.of(ORDERS)]
    assert states == [("colour", REFUSED, "question", "ann"), ("shop", PROPOSED, "monday", "")]
    assert [column.name for column in columns.of(ORDERS, *OPEN)] == ["shop"]

    columns.record(APPROVED, ORDERS, ["colour"], run_id="", said_by="bob")
    columns.record(REFUSED, ORDERS, ["colour"], run_id="", said_by="ann")
    [colour] = NewColumns(LakehousePaths(tmp_path)).of(ORDERS, APPROVED)
    assert (colour.name, colour.said_by) == ("colour", "bob")
    assert columns.of("bronze.other") == []
