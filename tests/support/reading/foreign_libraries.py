"""How other libraries than ours read a version of a Delta table, of which they are given the path."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.reading.predicates import Predicate, read_value


@dataclass(frozen=True)
class Join:
    """A join of a table with a version of another one by a column of both; a pair of ids is one number.

    Attributes:
        column: the column.
        kind: its type in Spark SQL.
        path: the other table.
        version: its version, which is its newest.
    """

    column: str
    kind: str
    path: str
    version: int

    def sql(self, left: str, right: str, quote: str = '"') -> str:
        """Return the query of two tables."""
        column = f"{quote}{self.column}{quote}"
        return f"SELECT 1000 * a.id + b.id AS id FROM {left} a JOIN {right} b ON a.{column} = b.{column}"

    @property
    def spark(self) -> str:
        """The join as it is shown."""
        return f"join by {self.column}"


Question = Predicate | Join
Read = Callable[[Question], list[int]]


def by_duckdb(path: str, version: int) -> Read:
    import duckdb

    from millrace.control.views.duckdb_file import delta_extension

    lake = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    lake.load_extension(str(delta_extension()))
    lake.execute("SET TimeZone = 'UTC'")
    source = f"delta_scan('{path}', version => {version})"

    def read(one: Question) -> list[int]:
        if isinstance(one, Join):
            query = one.sql(source, f"delta_scan('{one.path}', version => {one.version})")
        else:
            query = f"SELECT id FROM {source} WHERE {one.duckdb}"
        return [row[0] for row in lake.sql(query).fetchall()]

    return read


def by_polars(path: str, version: int) -> Read:
    import polars as pl

    frame = pl.scan_delta(path, version=version)

    def read(one: Question) -> list[int]:
        if isinstance(one, Join):
            joined = frame.join(pl.scan_delta(one.path, version=one.version), on=one.column)
            return joined.select(pl.col("id") * 1000 + pl.col("id_right")).collect()["id"].to_list()
        return frame.filter(one.polars()).select("id").collect()["id"].to_list()

    return read


def by_dataset(path: str, version: int) -> Read:
    from deltalake import DeltaTable

    rows = DeltaTable(path, version=version).to_pyarrow_dataset()

    def read(one: Question) -> list[int]:
        if isinstance(one, Join):
            columns = ["id", one.column]
            other = DeltaTable(one.path, version=one.version).to_pyarrow_table(columns=columns)
            joined = rows.to_table(columns=columns).join(other, one.column, join_type="inner", right_suffix="_b")
            return [1000 * a + b for a, b in zip(*(joined[name].to_pylist() for name in ("id", "id_b")), strict=True)]
        return rows.to_table(columns=["id"], filter=one.arrow())["id"].to_pylist()

    return read


def by_query_builder(path: str, version: int) -> Read:
    import pyarrow as pa
    from deltalake import DeltaTable, QueryBuilder

    reader = QueryBuilder().register("stored", DeltaTable(path, version=version))

    def read(one: Question) -> list[int]:
        if isinstance(one, Join):
            other = f"other_{one.column}"
            reader.register(other, DeltaTable(one.path, version=one.version))
            query = one.sql("stored", other)
        else:
            query = f"SELECT id FROM stored WHERE {one.datafusion}"
        return pa.table(reader.execute(query))["id"].to_pylist()

    return read


def by_daft(path: str, version: int) -> Read:
    import daft

    frame = daft.read_deltalake(path, version=version)

    def read(one: Question) -> list[int]:
        if isinstance(one, Join):
            other = daft.read_deltalake(one.path, version=one.version).select(daft.col("id").alias("b"), one.column)
            return frame.join(other, on=one.column).select(daft.col("id") * 1000 + daft.col("b")).to_pydict()["id"]
        name, *fields = one.column.split(".")
        column = daft.col(name).get(fields[0]) if fields else daft.col(name)
        values = [daft.lit(read_value(value, one.kind)) for value in one.values]
        return frame.where(one.expression(column, values)).select("id").to_pydict()["id"]

    return read


def by_chdb(path: str, version: int) -> Read:
    os.chdir(Path(path).parent)  # it reads nothing beside the folder of its process
    import chdb

    in_utc = "SETTINGS session_timezone = 'UTC'"

    def read(one: Question) -> list[int]:
        if isinstance(one, Join):
            query = one.sql(f"deltaLakeLocal('{path}')", f"deltaLakeLocal('{one.path}')") + " " + in_utc
        else:
            chosen = f"{in_utc}, delta_lake_snapshot_version = {version}"
            query = f"SELECT id FROM deltaLakeLocal('{path}') WHERE {one.clickhouse} {chosen}"
        return [int(line) for line in str(chdb.query(query, "CSV")).split()]

    return read


READERS: dict[str, tuple[str, Callable[[str, int], Read]]] = {
    "DuckDB, `delta_scan`": ("duckdb", by_duckdb),
    "Polars, `scan_delta`": ("polars", by_polars),
    "deltalake, `to_pyarrow_dataset`": ("deltalake", by_dataset),
    "deltalake, `QueryBuilder`": ("deltalake", by_query_builder),
    "Daft, `read_deltalake`": ("daft", by_daft),
    "chdb, `deltaLakeLocal`": ("chdb", by_chdb),
}
"""Reader -> its package, and what opens a version of a table."""
