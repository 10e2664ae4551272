"""Guess the fields of Avro files from their schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import MAX_PREC, Context, Decimal

import duckdb
import pyarrow as pa

from millrace.control.landing.formats.avro_files import open_avro
from millrace.control.landing.formats.avro_schema import column_type
from millrace.errors import BadInputError
from millrace.inference.delivered_files import LocalCopy
from millrace.inference.delivered_rows import FILE
from millrace.inference.guess import Guess, absences, mixed_fields, reading


def guess_of_avro(reader: duckdb.DuckDBPyConnection, files: list[LocalCopy]) -> Guess:
    """Guess from the schemas of Avro files, which DuckDB cannot read; the newest file decides about types."""
    alone, rows, unread = list[dict[str, str]](), list[dict[str, object]](), list[str]()
    for file in files:
        try:
            with reading(file, "avro"), file.path.open("rb") as stream:
                fields, records = open_avro(stream)
                rows += [{**record, FILE: file.name} for record in records]
                alone.append({field.name: column_type(field.kind) for field in fields})
        except BadInputError as error:
            unread.append(str(error))
    if not alone:
        raise BadInputError(unread[0])
    remarks = mixed_fields(alone)
    columns = {name: kind for columns in alone for name, kind in columns.items()} | dict.fromkeys(remarks, "string")
    reader.register("delivered", _as_text(rows, columns))
    return Guess(columns, absent=absences(alone), relation="delivered", unread=tuple(unread), remarks=remarks)


def _as_text(rows: Iterable[Mapping[str, object]], columns: Mapping[str, str]) -> pa.Table:
    """Return rows with their values as text, which is enough to count them."""
    texts = [{name: _text(value, columns.get(name, "")) for name, value in row.items()} for row in rows]
    return pa.Table.from_pylist(texts, pa.schema([(name, pa.string()) for name in (*columns, FILE)]))


def _text(value: object, kind: str) -> str | None:
    if isinstance(value, bytes) and kind.startswith("decimal"):
        scale = int(kind.rstrip(")").partition(",")[2])
        return str(Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale, Context(prec=MAX_PREC)))
    return None if value is None else str(value)
