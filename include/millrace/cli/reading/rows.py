"""The rows of a query as a table for people, or as CSV, JSON or Parquet."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich import box
from rich.table import Table
from rich.text import Text

from millrace.contracts.visible_text import visible
from millrace.errors import QueryError, first_line
from millrace.reading.duckdb_in_utc import duckdb_in_utc

_TEXT = "{}::VARCHAR"
_NESTED_TEXT = "CASE WHEN {0} IS NOT NULL THEN to_json({0})::VARCHAR END"
_NO_JSON = re.compile(r'("(?:[^"\\]|\\.)*")|NaN|-?Infinity')
"""A text, or a word that DuckDB writes for a number that JSON does not have."""

_LEAST_WIDTH, _GAP = 20, 3


def first_rows(rows: pa.RecordBatchReader, limit: int) -> pa.Table:
    """Return the first `limit` rows, or all for 0; read no more batches than needed."""
    batches, found = list[pa.RecordBatch](), 0
    for batch in rows:
        batches.append(batch)
        found += batch.num_rows
        if limit and found >= limit:
            break
    table = pa.Table.from_batches(batches, rows.schema)
    return table.slice(0, limit) if limit else table


def result_table(rows: pa.Table, width: int) -> tuple[Table, list[str]]:
    """Return rows as a table for a terminal, and the names of the last columns, which do not fit.

    Args:
        rows: the rows; values are shown as DuckDB writes them.
        width: the characters of a line; a column gets at least twenty of them if its values are that long.
    """
    columns = [column.to_pylist() for column in _converted(rows, _TEXT).itercolumns()]
    names, fitting, used = rows.schema.names, 0, 0
    for name, values in zip(names, columns, strict=True):
        used += min(max(len(text) for text in (name, *(value or "NULL" for value in values))), _LEAST_WIDTH) + _GAP
        fitting += used <= width or not fitting
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for field in list(rows.schema)[:fitting]:
        shown.add_column(Text(visible(field.name)), justify="right" if _is_number(field) else "left", overflow="fold")
    for row in zip(*columns[:fitting], strict=True):
        shown.add_row(*(Text("NULL", style="dim") if value is None else Text(visible(value)) for value in row))
    return shown, names[fitting:]


def write_csv(rows: pa.RecordBatchReader, out: BinaryIO) -> None:
    """Write rows as CSV with a header; NULL is nothing, an empty text is two quotes, a nested value is JSON.

    Decimals have all their digits.
    """
    out.write(_csv_lines([pa.array([name]) for name in rows.schema.names], [False] * len(rows.schema)))
    are_numbers = [_is_number(field) for field in rows.schema]
    are_nested = [pa.types.is_nested(field.type) for field in rows.schema]
    for batch in rows:
        texts = (
            pa.array([text and _strict_json(text) for text in texts.to_pylist()], pa.string()) if is_nested else texts
            for texts, is_nested in zip(_converted(batch, _TEXT, _NESTED_TEXT).columns, are_nested, strict=True)
        )
        columns = [
            # DuckDB writes other digits of a double, and pyarrow an exponent of a decimal.
            own.cast(pa.string()) if is_number and not pa.types.is_decimal(own.type) else text
            for own, text, is_number in zip(batch.columns, texts, are_numbers, strict=True)
        ]
        out.write(_csv_lines(columns, are_numbers))


def _csv_lines(columns: list[pa.Array], are_numbers: list[bool]) -> bytes:
    """Return lines of CSV of these texts; only those of numbers have no quotes.

    Python's writer does not tell NULL from an empty text before 3.12, and pyarrow's quotes a decimal that is a text.
    """
    quote = pa.scalar('"')
    values = [
        text if is_number else pc.binary_join_element_wise(quote, pc.replace_substring(text, '"', '""'), quote, "")
        for text, is_number in zip(columns, are_numbers, strict=True)
    ]
    lines = pc.binary_join_element_wise(*values, ",", null_handling="replace", null_replacement="").to_pylist()
    return "".join(f"{line}\n" for line in lines).encode()


def write_json(rows: pa.RecordBatchReader, out: BinaryIO) -> None:
    """Write rows as a JSON array with an object per line; numbers that JSON has no word for, such as NaN, are null."""
    if len(set(rows.schema.names)) < len(rows.schema.names):
        raise QueryError(f"two columns have the same name: {', '.join(rows.schema.names)}", "Name them with AS.")
    keys, comma = [json.dumps(name, ensure_ascii=False) for name in rows.schema.names], b"["
    for batch in rows:
        columns = _converted(batch, "to_json({})::VARCHAR").itercolumns()
        for row in zip(*(map(_strict_json, column.to_pylist()) for column in columns), strict=True):
            line = ", ".join(f"{key}: {value}" for key, value in zip(keys, row, strict=True))
            out.write(comma + f"\n{{{line}}}".encode())
            comma = b","
    out.write(b"[]\n" if comma == b"[" else b"\n]\n")


def write_parquet(rows: pa.RecordBatchReader, file: Path) -> int:
    """Write rows to a Parquet file, which appears when it is complete; return their number.

    Raises:
        QueryError: the file cannot be written, or Parquet has no type for a column.
    """
    partial, count = file.with_name(f".{file.name}.{uuid4().hex}"), 0
    try:
        with pq.ParquetWriter(partial, rows.schema) as writer:
            for batch in rows:
                writer.write_batch(batch)
                count += batch.num_rows
        os.replace(partial, file)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise QueryError(f"Parquet cannot hold a column: {first_line(error)}", "Cast it to VARCHAR.") from error
    except OSError as error:
        raise QueryError(f"{file} cannot be written: {first_line(error)}", "Name another file.") from error
    finally:
        partial.unlink(missing_ok=True)
    return count


def _is_number(field: pa.Field) -> bool:
    return any(is_type(field.type) for is_type in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))


def _converted(rows: pa.RecordBatch | pa.Table, expression: str, of_nested: str = "") -> pa.Table:
    """Return rows after DuckDB has evaluated an expression of each column, `{}`; the columns have other names."""
    names = [f"c{number}" for number in range(rows.num_columns)]
    nested = [of_nested if pa.types.is_nested(field.type) else "" for field in rows.schema]
    table = pa.Table.from_arrays(rows.columns, names)
    values = [(own or expression).format(name) for own, name in zip(nested, names, strict=True)]
    with duckdb_in_utc() as connection:
        return connection.from_arrow(table).project(", ".join(values)).to_arrow_table()


def _strict_json(value: str | None) -> str:
    r"""Return a value in JSON of which every reader knows each word.

    >>> _strict_json('[NaN, 1, -Infinity, "NaN \\" NaN"]'), _strict_json(None)
    ('[null, 1, null, "NaN \\" NaN"]', 'null')
    """
    return "null" if value is None else _NO_JSON.sub(lambda found: found[1] or "null", value)
