"""SQL over a Delta table by delta-rs's own engine, DataFusion. No JVM is needed.

Arrow's datasets answer as well, but a thread of theirs reads on behind the answer and then frees buffers of Python:
where Python is just ending, it aborts the process.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder


def query(table: DeltaTable, sql: str) -> list[dict[str, Any]]:
    """The rows that a query of `stored`, which is the table, answers."""
    rows: list[dict[str, Any]] = query_columns(table, sql).to_pylist()
    return rows


def query_columns(table: DeltaTable, sql: str) -> pa.Table:
    """The same, column by column."""
    return pa.table(QueryBuilder().register("stored", table).execute(sql))


def identifiers(names: Iterable[str]) -> str:
    """Columns as SQL names them, whatever their characters.

    >>> print(identifiers(["day", 'a "b" c']))
    "day", "a ""b"" c"
    """
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)


def texts(values: Iterable[str]) -> str:
    """Texts as SQL states them, whatever their characters.

    >>> texts(["it's", "day"])
    "'it''s', 'day'"
    """
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)


def moment(at: datetime) -> str:
    """A time as SQL states it."""
    return f"TIMESTAMP '{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z'"
