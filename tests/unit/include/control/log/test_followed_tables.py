"""Tables that are opened once give the same answers as tables that are opened each time."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from include.control.log.followed_tables import newest_table, sizes_at
from tests.support.ledger.delta_tables import append, create_table


@pytest.fixture
def table(tmp_path: Path) -> Path:
    create_table(tmp_path / "flights")
    return tmp_path / "flights"


def rows_at(table: Path, version: int) -> int:
    return sum(sizes_at(table, version).files["num_records"].to_pylist())


def test_the_next_read_sees_commits_of_other_writers(table: Path) -> None:
    assert newest_table(table).version() == 0
    for version in (1, 2, 3):
        append(table)
        assert newest_table(table).version() == version
        expected = [DeltaTable(str(table), version=at).count() for at in range(version + 1)]
        assert [rows_at(table, at) for at in range(version + 1)] == expected
        assert expected[version] > expected[version - 1]
    DeltaTable(str(table)).alter.set_table_properties({"delta.appendOnly": "true"})
    assert newest_table(table).metadata().configuration["delta.appendOnly"] == "true"


def test_another_table_at_the_same_path_is_noticed(table: Path) -> None:
    for _ in range(3):
        append(table)
    first, rows = str(newest_table(table).metadata().id), rows_at(table, 3)
    shutil.rmtree(table)
    with pytest.raises(TableNotFoundError):
        newest_table(table)
    create_table(table)
    for _ in range(4):
        append(table, 10)
    assert str(newest_table(table).metadata().id) != first
    assert rows_at(table, 3) != rows
    assert rows_at(table, 3) == DeltaTable(str(table), version=3).count()
