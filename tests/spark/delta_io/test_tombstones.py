"""Tombstones that a merge changes or leaves as they are: no file without rows is left behind."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow.parquet import ParquetFile
from pyspark.sql import SparkSession

from millrace_spark.delta_io.merges import merge_tombstones

COLUMNS = "id INT, _sequence INT, _source_hash BIGINT"
TWO, THREE = [(1, 5, 0), (2, 5, 0)], [(3, 5, 0)]
"""Tombstones that are known, in a file each."""

Change = tuple[int, int | None, int | None, bool]
CASES: dict[str, tuple[list[Change], list[tuple[int, ...]]]] = {
    "a new key, a later delete and an older one": (
        [(4, 1, 0, False), (1, 6, 0, False), (2, 4, 9, False)],
        [(1, 6, 0), (2, 5, 0), *THREE, (4, 1, 0)],
    ),
    "an older delete that alone counts and a key to forget": (
        [(1, 4, 0, True), (2, None, None, True)],
        [(1, 4, 0), *THREE],
    ),
    "an unknown key to forget": ([(9, None, None, True)], [*TWO, *THREE]),
    "an unknown key to forget beside a known delete": ([(9, None, None, True), (1, 5, 0, False)], [*TWO, *THREE]),
}


@pytest.mark.parametrize(("changes", "expected"), CASES.values(), ids=CASES)
def test_a_merge_leaves_no_file_without_rows(
    spark: SparkSession, tmp_path: Path, changes: list[Change], expected: list[tuple[int, ...]]
) -> None:
    path = tmp_path / "tombstones"
    schema = pa.schema([("id", pa.int32()), ("_sequence", pa.int32()), ("_source_hash", pa.int64())])
    for rows in (TWO, THREE):
        named = [dict(zip(schema.names, row, strict=True)) for row in rows]
        write_deltalake(path, pa.Table.from_pylist(named, schema), mode="append")

    forgets = any(replaces for *_, replaces in changes)
    merge_tombstones(
        spark, path, spark.createDataFrame(changes, f"{COLUMNS}, _replaces BOOLEAN"), ["id"], forgets=forgets
    )

    table = DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    assert sorted(tuple(row.values()) for row in table) == expected
    files = [ParquetFile(file).metadata.num_rows for file in path.glob("*.parquet")]
    assert len(files) >= 2
    assert 0 not in files
