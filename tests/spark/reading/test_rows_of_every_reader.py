"""Every way to read a certified table gives the rows of Spark, whatever their values, and whatever was done to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from millrace import certified, connect
from millrace.cli.reading.query import open_query
from millrace.control.log.stored_tables import open_table
from millrace.control.views.duckdb_file import delta_extension
from millrace.control.views.folder import INDEX
from millrace.paths import LakehousePaths
from millrace.reading.stored_version import StoredVersion
from millrace.reading.table_difference import table_difference
from millrace.settings import Settings
from tests.support.reading.certified_lake import certify
from tests.support.reading.predicates import Predicate
from tests.support.reading.value_tables import (
    BY_VALUE,
    PARTED,
    PLAIN,
    STATES,
    change,
    create,
    file_count,
    filters_of,
    ids_of_frame,
    ids_of_spark,
)

SESSION = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}
FILTERS_OF_A_COLUMN = 3

Ids = list[int]
Reader = Callable[[Predicate], Ids]


@pytest.fixture
def paths(lake: Path, spark: SparkSession, tmp_path: Path) -> LakehousePaths:
    """A table with all types, and one whose partitions have all values."""
    paths = LakehousePaths(lake, views=tmp_path / "views")
    create(spark, paths, PLAIN)
    create(spark, paths, BY_VALUE)
    return paths


def readers(table: str, views: Path) -> Iterator[tuple[str, Reader]]:
    """Our ways to read a table, which is opened once by each; Spark comes apart."""
    opened, lake, by_views = certified(table), connect(), in_views(views)
    relation, frame = opened.duckdb(), opened.polars()
    query = open_query(f"SELECT * FROM {table}", Settings()).connection
    yield (
        "query",
        lambda one: query.sql(f"SELECT id FROM {table} WHERE {one.duckdb}").to_arrow_table()["id"].to_pylist(),
    )
    yield "connect", lambda one: [row[0] for row in lake.sql(f"SELECT id FROM {table} WHERE {one.duckdb}").fetchall()]
    yield "duckdb", lambda one: [row[0] for row in relation.filter(one.duckdb).project("id").fetchall()]
    yield "views", lambda one: [row[0] for row in by_views.sql(f"SELECT id FROM {table} WHERE {one.duckdb}").fetchall()]
    yield "polars", lambda one: frame.filter(one.polars()).collect()["id"].to_list()
    yield "arrow", lambda one: opened.arrow(columns=["id"], filter=one.arrow())["id"].to_pylist()


def in_views(folder: Path) -> duckdb.DuckDBPyConnection:
    """Run the script of the views that are kept up to date."""
    database = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    database.load_extension(str(delta_extension()))
    database.execute((folder / "duckdb.sql").read_text())
    return database


def is_compared(reader: str, one: Predicate) -> bool:
    """Whether a reader means the same by a filter: to Arrow, NaN equals nothing; `delta_scan` misses -0.0."""
    is_float = one.kind in ("float", "double")
    return not is_float or (reader != "arrow" and (reader != "views" or 0 not in map(float, one.values)))


def test_every_reader_finds_the_rows_of_spark_in_every_state(
    spark: SparkSession, paths: LakehousePaths, tmp_path: Path
) -> None:
    compared, wrong, files = 0, [], set()
    for table in (PLAIN, BY_VALUE):
        path = Path(str(paths.table(table)))
        asked = {state: filters_of(table, state, FILTERS_OF_A_COLUMN) for state in STATES}
        right = iter(ids_of_spark(spark, path, list(chain(*asked.values()))))
        for state, filters in asked.items():
            change(spark, path, state)
            version = certify(paths, table)
            index = json.loads((tmp_path / "views" / INDEX).read_bytes())
            assert index[table] == {"path": str(path), "version": version, "certified_by_hand": None}, state
            files.add((table, file_count(path)))
            expected = [next(right) for _ in filters]
            assert ids_of_frame(certified(table).spark(spark), filters) == expected, f"{table} {state} spark"
            for name, read in readers(table, tmp_path / "views"):
                for one, ids in zip(filters, expected, strict=True):
                    if is_compared(name, one):
                        compared += 1
                        if (found := sorted(read(one))) != ids:
                            wrong.append(f"{table} {state} {name} WHERE {one.spark}: {found}, Spark: {ids}")
    assert wrong == []
    assert compared > 1800
    assert {(PLAIN, 26), (BY_VALUE, 20)} < files, "no table of many files was read"


def test_a_comparison_of_versions_finds_what_a_statement_of_spark_changed(
    spark: SparkSession, paths: LakehousePaths
) -> None:
    for table in (PLAIN, BY_VALUE):
        path = Path(str(paths.table(table)))
        loaded = StoredVersion(path, open_table(path).version())
        ids = loaded.dataset.to_table(columns=["id"])["id"].to_pylist()
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 3 = 0")
        spark.sql(f"RESTORE delta.`{path}` TO VERSION AS OF {loaded.version}").collect()
        spark.sql(f"UPDATE delta.`{path}` SET double = double + 0.0D")  # so -0.0 becomes 0.0
        without, restored, rewritten = (StoredVersion(path, loaded.version + step) for step in (1, 2, 3))
        deleted = table_difference(loaded, without)
        assert (deleted.added, deleted.removed) == (0, sum(each % 3 == 0 for each in ids)), table
        assert table_difference(loaded, restored).is_equal
        update = table_difference(loaded, rewritten)
        assert (update.is_equal, update.files_in_both, update.rows_after) == (True, 0, len(ids)), table


def test_joins_find_the_rows_of_spark(spark: SparkSession, paths: LakehousePaths) -> None:
    for table in (PLAIN, BY_VALUE):
        certify(paths, table)
    names = list(PARTED)
    sides = [f"delta.`{paths.table(table)}`" for table in (PLAIN, BY_VALUE)]
    joins = [
        f"SELECT '{name}', a.id, b.id FROM {sides[0]} a JOIN {sides[1]} b ON a.{name} = b.{name}" for name in names
    ]
    pairs = [tuple(row) for row in spark.sql(" UNION ALL ".join(joins)).collect()]
    lake, plain, by_value = connect(), certified(PLAIN).polars(), certified(BY_VALUE).polars()
    for name in names:
        right = sorted(row[1:] for row in pairs if row[0] == name)
        assert len(right) > 100, name
        joined = lake.sql(f'SELECT a.id, b.id FROM {PLAIN} a JOIN {BY_VALUE} b ON a."{name}" = b."{name}"').fetchall()
        assert sorted(joined) == right, name
        of_polars = plain.join(by_value, on=name).select("id", pl.col("id_right")).collect().rows()
        assert sorted(of_polars) == right, name


def test_values_of_all_types_are_those_of_spark(spark: SparkSession, paths: LakehousePaths, tmp_path: Path) -> None:
    for table in (PLAIN, BY_VALUE):
        certify(paths, table)
        opened, query = certified(table), f"FROM {table}"
        right = canonical(opened.spark(spark).toArrow())
        assert len(right) > 30
        read = {
            "arrow": opened.arrow(),
            "duckdb": opened.duckdb().to_arrow_table(),
            "connect": connect().sql(query).to_arrow_table(),
            "query": open_query(query, Settings()).connection.sql(query).to_arrow_table(),
            "views": in_views(tmp_path / "views").sql(query).to_arrow_table(),
            "polars": opened.polars().collect().to_arrow(),
        }
        for reader, rows in read.items():
            for found, expected in zip(canonical(rows), right, strict=True):
                assert found == expected, f"{table} {reader}"


def canonical(rows: pa.Table) -> list[str]:
    """Return the rows as texts, sorted: NaN equals NaN then, and no -0.0 a 0.0."""

    def value_of(value: object) -> object:
        if isinstance(value, list):  # a map has pairs, which are structs in Polars
            return [tuple(each.values()) if isinstance(each, dict) else each for each in value]
        return value.astimezone(UTC) if isinstance(value, datetime) else value

    return sorted(repr({name: value_of(row[name]) for name in sorted(row)}) for row in rows.to_pylist())
