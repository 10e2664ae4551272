"""Readers get the certified version, as each of the libraries that they use."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from embedded.clone import CLONE
from embedded.servers.s3 import Bucket
from millrace import certified, connect
from millrace.contracts.lake_path import S3Path
from millrace.control.gates.gates import Gates
from millrace.errors import MillraceError, NotReadyError, QueryError, UnknownNameError
from millrace.paths import LakehousePaths
from tests.support.reading.certified_lake import ORDERS, certify, now_of, orders, write_version

SCAN = """
import sys, duckdb
from millrace import certified
connection = duckdb.connect()
print(certified("silver.orders", sys.argv[1]).duckdb(connection).limit(3).fetchall())
"""


@pytest.fixture
def paths(tmp_path: Path) -> LakehousePaths:
    """A table with one certified version, and a newer one that its gate refused."""
    paths = LakehousePaths(tmp_path / "läke house")
    write_version(paths, orders("a", "b"))
    write_version(paths, orders("bad", "worse", "worst"), passed=False)
    return paths


def test_no_way_to_read_shows_a_row_that_the_gate_refused(
    paths: LakehousePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert DeltaTable(str(paths.table(ORDERS))).version() == 1
    read = certified(ORDERS, paths.root)
    passed, _ = Gates(paths).results(ORDERS)
    assert (read.version, read.path, read.certified_at) == (0, paths.table(ORDERS), passed.at)
    rows = orders("a", "b")
    assert read.arrow().equals(rows)
    assert read.arrow(columns=["n"], filter=ds.field("name") == "b").to_pydict() == {"n": [1]}
    assert read.duckdb().fetchall() == [("a", 0), ("b", 1)]
    assert read.polars().collect().rows() == [("a", 0), ("b", 1)]
    assert connect(paths.root).sql("SELECT max(name) FROM silver.orders").fetchall() == [("b",)]
    with duckdb.connect() as connection:
        relation = read.duckdb(connection)
        assert connection.sql("SELECT sum(n) FROM relation").fetchall() == [(1,)]
        assert relation.filter("n > 0").fetchall() == [("b", 1)]
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(QueryError, match=r"polars is not installed\npip install polars"):
        read.polars()


def test_a_snapshot_stays_and_an_earlier_time_reads_what_was_certified_then(paths: LakehousePaths) -> None:
    refused_at, before, views = now_of(paths), certified(ORDERS, paths.root), connect(paths.root)
    write_version(paths, orders("new"))
    at = now_of(paths)
    DeltaTable(str(paths.table(ORDERS))).optimize.z_order(["n"])
    write_version(paths, orders("newest"))
    assert before.arrow()["name"].to_pylist() == ["a", "b"]
    assert views.sql("SELECT count(*) FROM silver.orders").fetchall() == [(2,)]
    assert certified(ORDERS, paths.root, at=refused_at).version == 0
    optimized = certified(ORDERS, paths.root, at=at)
    assert (optimized.version, optimized.arrow()["name"].to_pylist()) == (3, ["new"])
    assert certified(ORDERS, paths.root, at=datetime.now(UTC)).arrow()["name"].to_pylist() == ["newest"]
    with pytest.raises(NotReadyError, match="no version was certified at 2013-01-01"):
        certified(ORDERS, paths.root, at=datetime(2013, 1, 1, tzinfo=UTC))
    with pytest.raises(QueryError, match="has no offset"):
        certified(ORDERS, paths.root, at=datetime(2013, 1, 1))  # noqa: DTZ001


def test_an_error_says_why_nothing_can_be_read_and_what_to_do(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)
    write_version(paths, orders("bad"), passed=False)
    write_version(paths, orders("a"), table="gold.unchecked", passed=None)
    write_version(paths, orders("a"), table="gold.sales")
    for table, error, message in (
        (ORDERS, NotReadyError, r"no version is certified\nsilver.orders version 0 refused.*\n`lakehouse gate show"),
        ("gold.unchecked", NotReadyError, r"no version is certified\nNo gate has checked it yet"),
        ("gold.sale", UnknownNameError, r"there is no table gold.sale in .*\ndid you mean 'gold.sales'"),
        ("../../etc", UnknownNameError, "is not the name of a table"),
        ("silver.Orders", UnknownNameError, "is not the name of a table"),
    ):
        with pytest.raises(error, match=message):
            certified(table, tmp_path)
    with pytest.raises(UnknownNameError, match="Set LAKEHOUSE_ROOT"):
        certified(ORDERS, tmp_path / "mistyped")
    with pytest.raises(QueryError, match="Set LAKEHOUSE_ROOT"):
        certified(ORDERS, "ftp://lake")
    assert not (tmp_path / "mistyped").exists()


def test_a_damaged_table_takes_no_other_table_with_it(paths: LakehousePaths) -> None:
    write_version(paths, orders("x"), table="silver.torn")
    write_version(paths, orders("x"), table="gold.order")
    for commit in (paths.table("silver.torn") / "_delta_log").glob("*.json"):
        commit.write_text("{")
    (paths.root / "silver" / "not_a_table").mkdir()
    (paths.root / "silver" / "Not.a.table").mkdir()
    with connect(paths.root) as lake:
        assert lake.sql("SELECT name FROM gold.order").fetchall() == [("x",)]
        assert lake.sql("SHOW TABLES").fetchall() == [("gold.order",), (ORDERS,)]
    with pytest.raises(MillraceError, match=r"silver.torn"):
        certified("silver.torn", paths.root).arrow()


def test_odd_partition_values_and_added_columns_are_read(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)
    days = ["a b/ü%", "x=1", "日本'--", None]
    rows = pa.table({"día": days, "n": [1, 2, 3, 4], 'a "b"': [[1], None, [], [2]]})
    write_version(paths, rows, partition_by=["día"])
    read = certified(ORDERS, tmp_path)
    assert sorted(read.arrow().select(rows.column_names).to_pylist(), key=lambda row: row["n"]) == rows.to_pylist()
    relation = read.duckdb()
    assert [relation.filter(f"\"día\" = '{day}'").fetchone()[1:2] for day in days[:2]] != [(), ()]
    assert relation.filter("\"día\" = '日本''--'").project("n").fetchall() == [(3,)]
    for at_end in range(3):  # Arrow shows the first bytes of a list, with a part of a letter at their end
        some = ["x=1", "-" * at_end + "日" * 99]
        assert read.polars().filter(pl.col("día").is_in(some)).collect()["n"].to_list() == [2]


def test_a_filter_on_numbers_opens_no_file_that_has_only_others(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)
    for part in (0, 1):
        rows = pa.table({"part": [part, part], "x": [part + 0.25, part + 0.5], "z": [None, float(-part)]})
        write_deltalake(str(paths.table(ORDERS)), rows, mode="append")
    certify(paths, ORDERS)
    for file in paths.table(ORDERS).glob("*.parquet"):
        if pq.read_table(file)["part"][0].as_py() == 0:
            file.unlink()
    read = certified(ORDERS, paths.root)
    for where, column in (("x > 1.25", pl.col("x") > 1.25), ("x IN (1.5, 7)", pl.col("x").is_in([1.5, 7.0]))):
        expected = [(1, 1.5, -1.0)]
        assert read.polars().filter(column).collect().rows() == expected
        assert read.duckdb().filter(where).fetchall() == expected
        assert connect(paths.root).sql(f"FROM {ORDERS} WHERE {where}").fetchall() == expected


def test_a_process_that_stops_reading_early_ends_in_peace(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)
    rows = orders(*map(str, range(200_000)))
    write_version(paths, pa.concat_tables([rows] * 5))
    for _ in range(2):
        command = [sys.executable, "-c", SCAN, str(tmp_path)]
        done = subprocess.run(command, cwd=CLONE, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stdout) == (0, "[('0', 0), ('1', 1), ('2', 2)]\n"), done.stderr


def test_a_lakehouse_in_a_bucket_is_read_alike(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_ROOT", f"s3a://{bucket.name}/läke house/")
    paths = LakehousePaths(S3Path(f"s3://{bucket.name}/läke house"))
    write_version(paths, orders("a", "b"), partition_by=["name"])
    write_version(paths, orders("bad"), passed=False, partition_by=["name"])
    read = certified(ORDERS)
    assert (str(read.path), read.version) == (f"s3://{bucket.name}/läke house/silver/orders", 0)
    assert sorted(read.arrow()["n"].to_pylist()) == [0, 1]
    assert sorted(read.polars().collect()["name"].to_list()) == ["a", "b"]
    assert connect().sql("SELECT max(name) FROM silver.orders").fetchall() == [("b",)]
    with pytest.raises(UnknownNameError, match=r"did you mean 'silver\.orders'"):
        certified("silver.orderz")
