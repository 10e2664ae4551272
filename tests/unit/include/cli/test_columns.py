"""`lakehouse columns`: new fields, and the decisions about them."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path

import pytest

from include.control.ledger.new_columns import ColumnState, NewColumns
from include.errors import ExitCode
from include.paths import LakehousePaths
from tests.support.cli import Lakehouse
from tests.support.documents.specs import bronze_document, write_specs
from tests.support.ledger.ledger_failures import failing_appends

ORDERS = "bronze.orders"
WRONG_USAGE = 2


@pytest.fixture
def columns(place: Mapping[str, str]) -> NewColumns:
    """Two new fields of a table with `evolve: ask`."""
    write_specs(Path(place["LAKEHOUSE_TABLES"]), bronze_document(on_drift="evolve", evolve="ask"))
    columns = NewColumns(LakehousePaths(Path(place["LAKEHOUSE_ROOT"])))
    columns.record(ColumnState.PROPOSED, ORDERS, ["colour", "shop"], run_id="scheduled__2013-01-01")
    return columns


def states(columns: NewColumns) -> dict[str, ColumnState]:
    return {column.name: column.state for column in columns.of(ORDERS)}


def test_it_lists_new_fields_with_their_state(lakehouse: Lakehouse, columns: NewColumns) -> None:
    assert len(states(columns)) == 2
    output = lakehouse("columns", ORDERS).stdout
    line = next(line for line in output.splitlines() if "colour" in line)
    assert "proposed" in line
    assert "scheduled__2013-01-01" in line
    assert "kept in _rescued until somebody decides" in line


def test_a_person_approves_and_refuses(lakehouse: Lakehouse, columns: NewColumns) -> None:
    answer = lakehouse("columns", ORDERS, "--approve", "colour", "--refuse", "shop")
    assert answer.exit_code == 0, answer.stderr
    assert states(columns) == {"colour": ColumnState.APPROVED, "shop": ColumnState.REFUSED}
    assert "from the next batch on" in answer.stdout
    assert all(column.said_by for column in columns.of(ORDERS))


def test_a_refused_column_can_be_approved_or_asked_about_later(lakehouse: Lakehouse, columns: NewColumns) -> None:
    columns.record(ColumnState.REFUSED, ORDERS, ["colour", "shop"], run_id="monday", said_by="ann")
    answer = lakehouse("columns", ORDERS, "--approve", "colour", "--ask", "shop")
    assert answer.exit_code == 0, answer.stderr
    assert states(columns) == {"colour": ColumnState.APPROVED, "shop": ColumnState.PROPOSED}


def test_a_full_disk_is_reported_in_one_line(
    lakehouse: Lakehouse, columns: NewColumns, monkeypatch: pytest.MonkeyPatch
) -> None:
    with failing_appends(monkeypatch, 1, errno.ENOSPC):
        answer = lakehouse("columns", ORDERS, "--approve", "colour")
    assert answer.exit_code == ExitCode.DISK_FULL
    assert answer.stderr.startswith("lakehouse columns: the disk is full: no space left for")
    assert "Traceback" not in answer.stderr
    assert states(columns)["colour"] is ColumnState.PROPOSED


def test_an_unknown_field_is_wrong_usage_with_a_hint(lakehouse: Lakehouse, columns: NewColumns) -> None:
    answer = lakehouse("columns", ORDERS, "--approve", "color")
    assert answer.exit_code == WRONG_USAGE
    assert "no record of bronze.orders has a new field 'color'\ndid you mean 'colour'?" in answer.stderr
    assert states(columns)["colour"] is ColumnState.PROPOSED


def test_an_approved_column_cannot_be_refused_any_more(lakehouse: Lakehouse, columns: NewColumns) -> None:
    columns.record(ColumnState.APPROVED, ORDERS, ["colour"], run_id="", said_by="ann")
    answer = lakehouse("columns", ORDERS, "--refuse", "colour")
    assert answer.exit_code == WRONG_USAGE
    assert answer.stderr.endswith("\nNo run removes columns.\n")


@pytest.mark.usefixtures("place")
def test_a_table_that_does_not_evolve_is_refused(lakehouse: Lakehouse) -> None:
    for table in (ORDERS, "silver.orders"):
        answer = lakehouse("columns", table)
        assert answer.exit_code == ExitCode.WRONG_USAGE
        assert f"{table} gets no new columns" in answer.stderr
