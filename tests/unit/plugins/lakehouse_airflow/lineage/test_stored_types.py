"""The types of a table's columns, from its log alone."""

from __future__ import annotations

import multiprocessing
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.schema import Field, PrimitiveType

from lakehouse_airflow.lineage.stored_types import stored_types
from tests.support.ledger.delta_tables import append, create_table

ROW = pa.table({"n": [1], "day": [date(2013, 1, 1)]})
NARROW, WIDE = {"n": "long"}, {"n": "long", "day": "date"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table with one column up to version 2, with two from version 3 on, and a checkpoint of version 5."""
    path = tmp_path / "gold" / "days"
    create_table(path)
    for _ in range(2):
        append(path)
    DeltaTable(str(path)).alter.add_columns([Field("day", PrimitiveType("date"))])
    for _ in range(2):
        write_deltalake(str(path), ROW, mode="append")
    DeltaTable(str(path)).create_checkpoint()
    write_deltalake(str(path), ROW, mode="append")
    assert (path / "_delta_log" / f"{5:020d}.checkpoint.parquet").exists()
    return path


def test_each_version_has_the_types_of_its_own_columns(table: Path) -> None:
    assert stored_types(table.parent, 3) == {}, "no table is there"
    assert [stored_types(table, version) for version in range(7)] == [NARROW] * 3 + [WIDE] * 4


def test_the_checkpoint_has_the_types_when_older_commits_are_gone(table: Path) -> None:
    for version in range(5):
        (table / "_delta_log" / f"{version:020d}.json").unlink()
    assert [stored_types(table, version) for version in (4, 5, 6)] == [{}, WIDE, WIDE]


def test_a_fork_of_a_process_that_has_used_delta_rs_reads_them(table: Path) -> None:
    assert DeltaTable(str(table)).to_pyarrow_table().num_rows == 5
    with multiprocessing.get_context("fork").Pool(1) as fork:
        assert fork.apply_async(stored_types, (table, 6)).get(timeout=60) == WIDE
