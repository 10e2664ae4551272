"""The decisions about fields without a declared column."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.control.ledger.new_columns import OPEN, ColumnState, NewColumns
from include.paths import LakehousePaths

ORDERS = "bronze.orders"
PROPOSED, ASKED, APPROVED, REFUSED = ColumnState


@pytest.fixture
def columns(tmp_path: Path) -> NewColumns:
    return NewColumns(LakehousePaths(tmp_path))


def test_a_lakehouse_begins_without_new_columns(columns: NewColumns) -> None:
    assert columns.of(ORDERS) == []


def test_the_last_event_of_a_column_counts(columns: NewColumns) -> None:
    columns.record(PROPOSED, ORDERS, ["colour", "shop"], run_id="monday")
    columns.record(ASKED, ORDERS, ["colour"], run_id="question")
    columns.record(REFUSED, ORDERS, ["colour"], run_id="question", said_by="ann")
    states = [(column.name, column.state, column.run_id, column.said_by) for column in columns.of(ORDERS)]
    assert states == [("colour", REFUSED, "question", "ann"), ("shop", PROPOSED, "monday", "")]
    assert [column.name for column in columns.of(ORDERS, *OPEN)] == ["shop"]


def test_an_approval_is_final_since_the_table_has_the_column(columns: NewColumns) -> None:
    columns.record(REFUSED, ORDERS, ["colour"], run_id="", said_by="ann")
    columns.record(APPROVED, ORDERS, ["colour"], run_id="", said_by="bob")
    columns.record(REFUSED, ORDERS, ["colour"], run_id="", said_by="ann")
    assert [(column.state, column.said_by) for column in columns.of(ORDERS)] == [(APPROVED, "bob")]


def test_each_table_has_its_own_columns(columns: NewColumns) -> None:
    columns.record(APPROVED, ORDERS, ["colour"], run_id="")
    assert columns.of("bronze.other") == []
    assert NewColumns(LakehousePaths(columns._events._path.parents[1])).of(ORDERS, APPROVED), "kept on disk"
