"""`lakehouse columns`: new fields, and the decisions about them."""

from __future__ import annotations

import errno
import os

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from millrace.control.ledger.new_columns import ColumnState, NewColumns
from millrace.control.ledger.ops_table import OpsTable
from millrace.errors import ExitCode
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.documents.specs import bronze_document, write_specs

ORDERS = "bronze.orders"
WRONG_USAGE = 2


@pytest.fixture
def columns(settings: Settings) -> NewColumns:
    """Two new fields of a table with `evolve: ask`."""
    write_specs(settings.tables, bronze_document(on_drift="evolve", evolve="ask"))
    columns = NewColumns(settings.paths)
    columns.record(ColumnState.PROPOSED, ORDERS, ["colour", "shop"], run_id="scheduled__2013-01-01")
    return columns


def states(columns: NewColumns) -> dict[str, ColumnState]:
    return {column.name: column.state for column in columns.of(ORDERS)}


def test_a_person_sees_new_fields_and_approves_refuses_or_asks_later(lakehouse: Lakehouse, columns: NewColumns) -> None:
    listed = lakehouse("columns", ORDERS).stdout.splitlines()
    [line] = [line for line in listed if "colour" in line]
    assert line.split()[:2] == ["colour", "proposed"]
    assert "scheduled__2013-01-01" in line
    assert "kept in _rescued until somebody decides" in line
    answer = lakehouse("columns", ORDERS, "--approve", "colour", "--refuse", "shop")
    assert answer.exit_code == 0, answer.stderr
    assert states(columns) == {"colour": ColumnState.APPROVED, "shop": ColumnState.REFUSED}
    assert "from the next batch on" in answer.stdout
    assert all(column.said_by for column in columns.of(ORDERS))
    too_late = lakehouse("columns", ORDERS, "--refuse", "colour")
    assert (too_late.exit_code, too_late.stderr.split("\n")[1]) == (WRONG_USAGE, "No run removes columns.")
    later = {"--ask": ColumnState.PROPOSED, "--refuse": ColumnState.REFUSED, "--approve": ColumnState.APPROVED}
    for option, state in later.items():
        assert lakehouse("columns", ORDERS, option, "shop").exit_code == 0
        assert states(columns)["shop"] is state


def test_values_beside_a_restricted_column_are_not_shown(
    lakehouse: Lakehouse, columns: NewColumns, settings: Settings
) -> None:
    write_deltalake(settings.paths.table(ORDERS), pa.table({"_rescued": ['{"colour":"Quimby"}']}))
    shown = lakehouse("columns", ORDERS).stdout
    restricted = {**bronze_document()["columns"], "amount": {"type": "int", "classification": "restricted"}}
    write_specs(settings.tables, bronze_document(on_drift="evolve", evolve="ask", columns=restricted))
    hidden = lakehouse("columns", ORDERS).stdout
    assert [("Quimby" in text, "1 row" in text) for text in (shown, hidden)] == [(True, True), (False, True)]


def test_a_full_disk_is_reported_in_one_line(
    lakehouse: Lakehouse, columns: NewColumns, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(OpsTable, "append", fail)
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


@pytest.mark.usefixtures("place")
def test_a_table_that_does_not_evolve_is_refused(lakehouse: Lakehouse) -> None:
    for table in (ORDERS, "silver.orders"):
        answer = lakehouse("columns", table)
        assert answer.exit_code == ExitCode.WRONG_USAGE
        assert f"{table} gets no new columns" in answer.stderr
