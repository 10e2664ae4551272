"""Compare a table with its expected rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from demo.oracle.definitions import CHECKSUMS


@dataclass(frozen=True)
class Comparison:
    """The differences between a table and its expected rows, in the columns that its definition names.

    ``missing`` and ``unexpected`` count rows; a row with one wrong value is in both. ``examples`` shows a few of them,
    each with ``side`` = ``missing`` or ``unexpected``.
    """

    table: str
    expected_rows: int
    actual_rows: int
    missing: int
    unexpected: int
    examples: tuple[dict[str, Any], ...]

    @property
    def equal(self) -> bool:
        """Whether both have the same rows, each equally often."""
        return not (self.missing or self.unexpected)


def checksums(connection: duckdb.DuckDBPyConnection, table: str, relation: str) -> dict[str, int | None]:
    """Return the checksums of ``table`` for any relation of DuckDB, such as ``delta_scan('<path>', version = 3)``."""
    names = CHECKSUMS[table]
    values = connection.execute(f"SELECT {', '.join(names.values())} FROM {relation}").fetchall()[0]
    return dict(zip(names, values, strict=True))


def compare(connection: duckdb.DuckDBPyConnection, table: str, actual: pa.Table) -> Comparison:
    """Compare ``actual`` with the table of that name in ``connection``.

    Columns that the expected table does not have are ignored, values are cast to its types and fractions are rounded to
    6 digits.

    Raises:
        KeyError: ``actual`` lacks a column of the expected table.
    """
    expected = connection.table(table)
    if absent := [name for name in expected.columns if name not in actual.column_names]:
        raise KeyError(f"{table} lacks the columns {absent}; it has {actual.column_names}")
    values = ", ".join(
        _comparable(name, str(kind)) for name, kind in zip(expected.columns, expected.types, strict=True)
    )
    connection.register("actual", actual)
    missing = _rows_only_in(connection, table, "actual", values)
    unexpected = _rows_only_in(connection, "actual", table, values)
    connection.unregister("actual")
    return Comparison(
        table=table,
        expected_rows=len(expected),
        actual_rows=actual.num_rows,
        missing=missing.num_rows,
        unexpected=unexpected.num_rows,
        examples=(*_examples("missing", missing), *_examples("unexpected", unexpected)),
    )


def _comparable(name: str, type_name: str) -> str:
    value = f'CAST("{name}" AS {type_name})'
    return f'ROUND({value}, 6) AS "{name}"' if type_name == "DOUBLE" else f'{value} AS "{name}"'


def _rows_only_in(connection: duckdb.DuckDBPyConnection, relation: str, other: str, values: str) -> pa.Table:
    """Return the rows that occur in ``relation`` more often than in ``other``."""
    return connection.execute(
        f"SELECT {values} FROM {relation} EXCEPT ALL SELECT {values} FROM {other} ORDER BY ALL"
    ).to_arrow_table()


def _examples(side: str, rows: pa.Table) -> tuple[dict[str, Any], ...]:
    return tuple({"side": side, **row} for row in rows.slice(0, 3).to_pylist())
