"""The two ways in which rows get into a table without a merge: appended, or in the place of others."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame

from include.contracts.lake_path import LakePath
from include.control.ledger.measures import table_rows
from include.control.log.delta_log import read_commit
from spark_jobs.delta_io.tables import spark_path, sql_text


def append(rows: DataFrame, path: LakePath) -> None:
    """Append the rows to the table at `path` in one commit."""
    rows.write.format("delta").mode("append").save(spark_path(path))


def replace_where(rows: DataFrame, path: LakePath, predicate: str) -> None:
    """Put the rows in the place of those of the table at `path` for which `predicate` is true, in one commit.

    Delta refuses rows that do not fulfil the predicate themselves.
    """
    rows.write.format("delta").mode("overwrite").option("replaceWhere", predicate).save(spark_path(path))


def one_of(column: str, values: Iterable[str]) -> str:
    """SQL that is true where the column, as text, is one of the values.

    >>> one_of("_source_file", ["orders/a.json", "orders/b.json"])
    "`_source_file` IN ('orders/a.json', 'orders/b.json')"
    """
    return f"`{column}` IN ({', '.join(map(sql_text, values))})"


def replaced_rows(path: LakePath, version: int) -> tuple[int, int]:
    """(rows written, rows removed) by an append or a `replace_where`, without those that Delta merely copied."""
    commit = read_commit(path, version)
    metrics = commit.metrics if commit else {}
    written = int(metrics.get("numOutputRows", "0")) - int(metrics.get("numCopiedRows", "0"))
    if "numDeletedRows" not in metrics and int(metrics.get("numRemovedFiles", "0")):
        # A commit that writes no row at all does not count those of the files that it removes either.
        return written, table_rows(path, version - 1) - table_rows(path, version)
    return written, int(metrics.get("numDeletedRows", "0"))
