"""Every way to read a certified table gives the rows of Spark, whatever their values, and whatever was done to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

from include.cli.reading.query import open_query
from include.paths import LakehousePaths
from include.settings import Settings
from millrace import certified, connect
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
    ids_of_spark,
)

SESSION = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}
FILTERS_OF_A_COLUMN = 3

Ids = list[int]
Reader = Callable[[Predicate], Ids]


@pytest.fixture
def paths(lake: Path, spark: SparkSession) -> LakehousePaths:
    """A table with all types, and one whose partitions have all values."""
    paths = LakehousePaths(lake)
    create(spark, paths, PLAIN)
    create(spark, paths, BY_VALUE)
    return paths


def readers(table: str) -> Iterator[tuple[str, Reader]]:
    """Our ways to read a table, which is opened once by each."""
    opened, lake = certified(table), connect()
    relation, frame = opened.duckdb(), opened.polars()
    query = open_query(f"SELECT * FROM {table}", Settings()).connection
    yield (
        "query",
        lambda one: query.sql(f"SELECT id FROM {table} WHERE {one.duckdb}").to_arrow_table()["id"].to_pylist(),
    )
    yield "connect", lambda one: [row[0] for row in lake.sql(f"SELECT id FROM {table} WHERE {one.duckdb}").fetchall()]
    yield "duckdb", lambda one: [row[0] for row in relation.filter(one.duckdb).project("id").fetchall()]
    yield "polars", lambda one: frame.filter(one.polars()).collect()["id"].to_list()
    yield "arrow", lambda one: opened.arrow(columns=["id"], filter=one.arrow())["id"].to_pylist()


def is_compared(reader: str, one: Predicate) -> bool:
    """Whether a reader means the same by a filter: to Arrow, NaN equals nothing."""
    return reader != "arrow" or one.kind not in ("float", "double")


def test_every_reader_finds_the_rows_of_spark_in_every_state(spark: SparkSession, paths: LakehousePaths) -> None:
    compared, wrong, files = 0, [], set()
    for table in (PLAIN, BY_VALUE):
        path = Path(str(paths.table(table)))
        asked = {state: filters_of(table, state, FILTERS_OF_A_COLUMN) for state in STATES}
        right = iter(ids_of_spark(spark, path, list(chain(*asked.values()))))
        for state, filters in asked.items():
            change(spark, path, state)
            certify(paths, table)
            files.add((table, file_count(path)))
            expected = [next(right) for _ in filters]
            for name, read in readers(table):
                for one, ids in zip(filters, expected, strict=True):
                    if is_compared(name, one):
                        compared += 1
                        if (found := sorted(read(one))) != ids:
                            wrong.append(f"{table} {state} {name} WHERE {one.spark}: {found}, Spark: {ids}")
    assert wrong == []
    assert compared > 1800
    assert {(PLAIN, 26), (BY_VALUE, 20)} < files, "no table of many files was read"


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
