"""What a table consists of, and copies of lakes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from benchmarks.table_files import bytes_in, files_written, key_ranges, linked_copy


def table_of(folder: Path, *files: list[int]) -> Path:
    for ids in files:
        write_deltalake(str(folder), pa.table({"id": ids}), mode="append")
    return folder


def test_the_keys_of_each_file_are_told_in_their_order(tmp_path: Path) -> None:
    table = table_of(tmp_path / "orders", [30, 40], [10, 25, 20])
    assert key_ranges(table, "id") == [(10, 25), (30, 40)]
    assert bytes_in(table) == sum(file.stat().st_size for file in table.glob("*.parquet"))


def test_no_key_is_in_the_ranges_of_two_files(tmp_path: Path) -> None:
    table = table_of(tmp_path / "orders", [1, 12], [10, 20], [15, 18], [19, 30])
    assert key_ranges(table, "id") == [(1, 12), (13, 20), (21, 30)]


def test_the_files_of_the_newest_commit_are_counted(tmp_path: Path) -> None:
    table = table_of(tmp_path / "orders", [1], [2])
    assert files_written(table) == 1
    DeltaTable(str(table)).delete("id = 1")
    assert files_written(table) == 0


def test_what_happens_to_a_copy_leaves_the_lake_alone(tmp_path: Path) -> None:
    table_of(tmp_path / "lake" / "silver" / "orders", [1, 2])
    for _ in range(2):  # what is there is replaced
        copy = linked_copy(tmp_path / "lake", tmp_path / "copy") / "silver" / "orders"
        table_of(copy, [3])
        assert DeltaTable(str(copy)).to_pyarrow_table().num_rows == 3
    original = tmp_path / "lake" / "silver" / "orders"
    assert DeltaTable(str(original)).to_pyarrow_table().num_rows == 2
    [data] = original.glob("*.parquet")
    assert (copy / data.name).stat().st_ino == data.stat().st_ino
    [log] = original.glob("_delta_log/*.json")
    assert (copy / "_delta_log" / log.name).stat().st_ino != log.stat().st_ino
