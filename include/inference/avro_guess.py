"""Guess the fields of Avro files from their schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import duckdb
import fastavro
import pyarrow as pa

from include.control.landing.formats.avro_files import avro_fields
from include.control.landing.formats.avro_schema import column_type
from include.errors import BadInputError
from include.inference.delivered_files import LocalCopy
from include.inference.delivered_rows import FILE
from include.inference.guess import Guess, absences, reading


def guess_of_avro(reader: duckdb.DuckDBPyConnection, files: list[LocalCopy]) -> Guess:
    """Guess from the schemas of Avro files, which DuckDB cannot read; the newest file decides about types."""
    alone, rows, unread = list[dict[str, str]](), list[dict[str, object]](), list[str]()
    for file in files:
        try:
            with reading(file, "avro"), file.path.open("rb") as stream:
                fields = {avro_field.name: column_type(avro_field.kind) for avro_field in avro_fields(stream)}
                stream.seek(0)
                rows += [{**record, FILE: file.name} for record in fastavro.reader(stream) if isinstance(record, dict)]
                alone.append(fields)
        except BadInputError as error:
            unread.append(str(error))
    if not alone:
        raise BadInputError(unread[0])
    columns = {name: kind for columns in alone for name, kind in columns.items()}
    reader.register("delivered", _as_text(rows, columns))
    return Guess(columns, absent=absences(alone), relation="delivered", unread=tuple(unread))


def _as_text(rows: Iterable[Mapping[str, object]], columns: Iterable[str]) -> pa.Table:
    """Return rows with their values as text, which is enough to count them."""
    texts = [{name: None if value is None else str(value) for name, value in row.items()} for row in rows]
    return pa.Table.from_pylist(texts, pa.schema([(name, pa.string()) for name in (*columns, FILE)]))
