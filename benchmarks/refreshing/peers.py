"""The gold tables by others: whole by Spark, as a table materialisation of dbt, and the touched groups by delta-rs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from benchmarks.refreshing.shop import CUSTOMERS_TABLE, SILVER
from demo.reading import delta_reader
from millrace.paths import LakehousePaths

_MEASURES = "count(*) AS orders, sum(o.amount) AS total, max(o.amount) AS largest"
MOST_TOUCHED = 1_000
"""If more values are touched, delta-rs replaces all groups: its predicate is a text with all of them."""


@dataclass(frozen=True)
class Query:
    """A gold table as SQL that Spark and DuckDB know.

    Attributes:
        source: the table whose changes touch groups.
        touched: the column of the gold table by which it is refreshed.
        traced: SQL over a row `o` of the source: its value of that column.
        sql: the query, with places for the relations `o` and `c`, and for a condition.
    """

    source: str
    touched: str
    traced: str
    sql: str


QUERIES = {
    "gold.by_day": Query(
        SILVER, "day", "o.day",
        f"SELECT o.day, o.country, {_MEASURES} FROM {{o}} o WHERE {{where}} GROUP BY o.day, o.country",
    ),
    "gold.by_customer": Query(
        SILVER, "customer", "o.customer",
        f"SELECT o.customer, {_MEASURES} FROM {{o}} o WHERE {{where}} GROUP BY o.customer",
    ),
    "gold.by_basket": Query(
        SILVER, "basket", "o.basket",
        f"SELECT o.basket, {_MEASURES} FROM {{o}} o WHERE {{where}} GROUP BY o.basket",
    ),
    "gold.by_segment": Query(
        SILVER, "day", "o.day",
        f"SELECT o.day, c.segment, {_MEASURES} FROM {{o}} o LEFT JOIN {{c}} c ON c.id = o.customer WHERE {{where}} "
        "GROUP BY o.day, c.segment",
    ),
    "gold.places": Query(
        SILVER, "day", "o.day",
        "SELECT o.id, o.day, o.customer, o.amount, "
        "rank() OVER (PARTITION BY o.day ORDER BY o.amount DESC, o.id) AS place FROM {o} o WHERE {where}",
    ),
    "gold.by_month": Query(
        "gold.by_day", "month", "CAST(date_trunc('month', o.day) AS DATE)",
        "SELECT CAST(date_trunc('month', o.day) AS DATE) AS month, sum(o.orders) AS orders, sum(o.total) AS total, "
        "max(o.largest) AS largest FROM {o} o WHERE {where} GROUP BY 1",
    ),
}  # fmt: skip
"""Gold table -> its query."""


def whole_by_spark(session: SparkSession, paths: LakehousePaths, table: str, target: Path) -> None:
    """Replace the table at `target` by all rows of a gold table."""
    query = QUERIES[table]
    names = {alias: f"delta.`{paths.table(source)}`" for alias, source in _sources(query).items()}
    session.sql(f"CREATE OR REPLACE TABLE delta.`{target}` USING delta AS {query.sql.format(**names, where='true')}")


def touched_by_delta_rs(paths: LakehousePaths, table: str, target: Path) -> None:
    """Replace the groups at `target` that the newest commit of the source touched; a new table gets all groups."""
    query = QUERIES[table]
    with delta_reader() as reader:
        where = _touched(reader, paths, query) if DeltaTable.is_deltatable(str(target)) else "true"
        names = {alias: f"delta_scan('{paths.table(source)}')" for alias, source in _sources(query).items()}
        condition = where if where == "true" else f"{query.traced} {where}"
        rows = reader.execute(query.sql.format(**names, where=condition)).to_arrow_table()
    predicate = None if where == "true" else f"{query.touched} {where}"
    write_deltalake(str(target), rows, mode="overwrite", predicate=predicate)


def _touched(reader: duckdb.DuckDBPyConnection, paths: LakehousePaths, query: Query) -> str:
    source = DeltaTable(str(paths.table(query.source)))
    reader.register("changes", source.load_cdf(starting_version=source.version()).read_all())
    traced = reader.execute(f"SELECT DISTINCT {query.traced} FROM changes o").fetchall()
    return "true" if len(traced) > MOST_TOUCHED else f"IN ({', '.join(_literal(value) for (value,) in traced)})"


def _literal(value: object) -> str:
    return str(value) if isinstance(value, int) else f"DATE '{value}'"


def _sources(query: Query) -> dict[str, str]:
    return {"o": query.source, "c": CUSTOMERS_TABLE}
