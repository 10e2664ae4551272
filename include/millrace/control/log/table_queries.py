"""Query a Delta table with SQL through delta-rs's engine, DataFusion, without a JVM.

Arrow's datasets are no alternative: one of their threads continues to read after the result and then frees buffers of
Python, which aborts a process that is just ending.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder


def query(table: DeltaTable, sql: str) -> list[dict[str, Any]]:
    """Return the rows of a query; `stored` is the name of the table in the SQL."""
    rows: list[dict[str, Any]] = pa.table(QueryBuilder().register("stored", table).execute(sql)).to_pylist()
    return rows


def identifiers(names: Iterable[str]) -> str:
    """Return column names as a list of quoted SQL identifiers.

    >>> print(identifiers(["day", 'a "b" c']))
    "day", "a ""b"" c"
    """
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)


def text_literals(values: Iterable[str]) -> str:
    """Return texts as a list of SQL literals.

    >>> text_literals(["it's", "day"])
    "'it''s', 'day'"
    """
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)


def timestamp_literal(at: datetime) -> str:
    """Return a time as an SQL literal."""
    return f"TIMESTAMP '{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z'"
