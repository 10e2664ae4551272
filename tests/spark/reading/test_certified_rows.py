"""What people copy from the tab Overview, and what Spark reads by name, are the certified rows."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from lakehouse_airflow.pages.tabs.overview import certified_queries
from millrace import certified
from millrace.cli.app import app
from millrace.control.gates.gates import Gates
from millrace.control.views.duckdb_file import delta_extension
from millrace.control.views.folder import SCRIPTS
from millrace.paths import LakehousePaths
from tests.support.reading.certified_lake import orders, write_version

TABLE = "silver.order"
CERTIFIED = [("a", 0), ("b", 1)]

Rows = list[tuple[Any, ...]]


def in_lakehouse(line: str, _: SparkSession) -> Rows:
    [command, *arguments] = shlex.split(line)
    assert command == "lakehouse"
    output = CliRunner().invoke(app, arguments).stdout
    return [(row["name"], int(row["n"])) for row in csv.DictReader(io.StringIO(output))]


def in_python(lines: str, _: SparkSession) -> Rows:
    statement, expression = lines.split("; ")
    names: dict[str, Any] = {}
    exec(statement, names)
    return of_arrow(eval(expression, names))


def in_duckdb(query: str, _: SparkSession) -> Rows:
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as database:
        database.load_extension(str(delta_extension()))
        return database.sql(query).fetchall()


def in_spark(expression: str, spark: SparkSession) -> Rows:
    return [tuple(row) for row in eval(expression, {"spark": spark}).collect()]


def in_delta_rs(expression: str, _: SparkSession) -> Rows:
    return of_arrow(eval(expression, {"DeltaTable": DeltaTable}))


def of_arrow(table: Any) -> Rows:
    return [(row["name"], row["n"]) for row in table.to_pylist()]


TOOLS: dict[str, Callable[[str, SparkSession], Rows]] = {
    "lakehouse": in_lakehouse,
    "Python": in_python,
    "DuckDB": in_duckdb,
    "Spark": in_spark,
    "delta-rs": in_delta_rs,
}


@pytest.fixture
def queries(lake: Path) -> dict[str, str]:
    """The queries for a table whose newest version was refused, and which a keyword is a part of."""
    paths = LakehousePaths(lake)
    version = write_version(paths, orders("a", "b"), table=TABLE)
    write_version(paths, orders("bad"), table=TABLE, passed=False)
    return certified_queries(TABLE, paths.table(TABLE), version)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_query_to_copy_gives_the_certified_rows(spark: SparkSession, queries: dict[str, str], tool: str) -> None:
    assert sorted(TOOLS[tool](queries[tool], spark)) == CERTIFIED


def test_the_query_for_trino_is_sql_of_trino(queries: dict[str, str]) -> None:
    """Trino is not among the tests: this finds a wrong quote, and no wrong name."""
    assert queries.keys() == {*TOOLS, "Trino"}
    [query] = sqlglot.parse(queries["Trino"], read="trino")
    assert query is not None
    assert query.sql("trino") == 'SELECT * FROM silver_all_versions."order" FOR VERSION AS OF 0'


def test_a_frame_and_a_view_have_the_certified_rows(spark: SparkSession, lake: Path) -> None:
    paths = LakehousePaths(lake / "läke `x`")
    write_version(paths, orders("a"), table=TABLE)
    write_version(paths, orders("bad", "worse"), table=TABLE, passed=False)
    view = Gates(paths).views([TABLE])[0][TABLE]
    assert view is not None
    for statement in SCRIPTS["spark"]([view]).split(";\n")[:-1]:
        spark.sql(statement)
    try:
        assert [tuple(row) for row in spark.sql("FROM silver.order").collect()] == [("a", 0)]
    finally:
        spark.sql("DROP DATABASE silver CASCADE")
    assert [tuple(row) for row in certified(TABLE, paths.root).spark(spark).collect()] == [("a", 0)]
