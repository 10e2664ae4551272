"""Make bronze rows from received records: convert the values, rescue what does not fit, mark what cannot be parsed."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.contracts.spec.nested_type import is_nested
from include.contracts.spec.record_fields import path_text
from spark_jobs.transforms.exact_values import can_be_stored, exact, may_not_be_stored, with_null_values
from spark_jobs.transforms.java_functions import java_function
from spark_jobs.transforms.nested_values import MISFIT, VALUE, WHOLE, fields_in, losses, read_as
from spark_jobs.transforms.record_parts import LOST, RecordColumns, with_parts

RESCUED = "_rescued"
"""JSON of the values that fit no declared column; null when every value fits."""

RECORD = "_record"
"""A record as text, before it is parsed."""

CORRUPT = "_corrupt_record"
"""The record as text when it cannot be parsed; null for every readable record. Never stored in bronze."""

EXACT_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Options of JSON: Spark's default format leaves microseconds out."""

_BASE64_PREFIX = "no text, in base64: "
"""The start of `_corrupt_record` where the record's bytes are not text."""

_FIELDS = "_fields"
"""A record with its fields, as `fields_in` returns it."""

_BLANK = " \t\r\n"
"""The characters that JSON allows between its values."""


def is_blank(text: str) -> Column:
    """Return whether a line is blank as JSON defines it: it has no record."""
    return F.btrim(F.col(text), F.lit(_BLANK)) == ""


def parse_json(df: DataFrame, columns: RecordColumns, field_names: str) -> DataFrame:
    """Make bronze rows from JSON objects, one row per record.

    Args:
        df: columns `_record` (the object as text), columns that do not come from the object, and others.
        columns: what is read; `fields` has the columns that come from the object.
        field_names: `exact`, or `any_case`: a column also reads a field whose name differs only in case. If a record
            has several such fields, the column is null, and all of them are in `_rescued`.

    Returns:
        The columns, `_rescued`, `_corrupt_record`, and the other columns of `df`. If an object
        names a field twice, the last value counts.
    """
    record = fields_in(_text_of_record(), columns.fields.values(), field_names == "any_case")
    return _json_rows(df.withColumn(_FIELDS, record), columns)


def parse_json_lines(df: DataFrame, columns: RecordColumns, field_names: str) -> DataFrame:
    """Make bronze rows like `parse_json` from lines that may have several objects, one after the other."""
    fields = F.lit(json.dumps([*columns.fields.values()]))
    records = java_function("JsonRecords", _text_of_record(), fields, F.lit(field_names == "any_case"))
    return _json_rows(df.select("*", F.explode_outer(records).alias(_FIELDS)), columns)


def _text_of_record() -> Column:
    return F.when(F.is_valid_utf8(RECORD), F.col(RECORD))


def _json_rows(df: DataFrame, columns: RecordColumns) -> DataFrame:
    texts = {name: F.col(_FIELDS)["texts"][at] for at, name in enumerate(columns.fields)}
    received = {name: kind for name, kind in df.dtypes if name in columns.kinds} | dict.fromkeys(texts, "string")
    raw = {name: texts.get(name, F.col(name)) for name in columns.kinds}
    sound = [name for name in texts if columns.kinds[name] == "string"]
    corrupt = F.when(F.col(_FIELDS).isNull(), unreadable(RECORD))
    more = F.to_json(F.col(_FIELDS)["more"])
    return _bronze_rows(df, columns, raw, received, sound, {}, [more], corrupt, {RECORD, _FIELDS})


def unreadable(text: str) -> Column:
    """Return a record that cannot be parsed as `_corrupt_record` shows it: bytes that are not UTF-8 in base64."""
    return F.when(F.is_valid_utf8(text), F.col(text)).otherwise(in_base64(F.col(text).cast("binary")))


def in_base64(received: Column) -> Column:
    """Return bytes that are not text as `_corrupt_record` shows them."""
    return F.concat(F.lit(_BASE64_PREFIX), F.base64(received))


def is_no_text(corrupt: Column) -> Column:
    """Return true where `_corrupt_record` shows bytes in base64."""
    return corrupt.startswith(_BASE64_PREFIX)


def nested_as_json(value: Column, received: str, declared: str | None) -> Column:
    """Return a struct, array or map as JSON, as JSON records have it; unchanged if it has the type of its column.

    Args:
        value: what a Parquet or Avro file or message has.
        received: its Spark type.
        declared: the type of the column that reads it; None for an undeclared field.
    """
    return as_json(value) if is_nested(received) and received != declared else value


def as_json(value: Column) -> Column:
    """Return a struct, array or map as JSON, with its nulls."""
    return F.to_json(value, {**EXACT_TIMES, "ignoreNullFields": "false"})


def parse_columns(df: DataFrame, columns: RecordColumns, undeclared: Mapping[str, str]) -> DataFrame:
    """Make bronze rows from records that have columns already (CSV, Parquet, Avro).

    Args:
        df: columns as received; a missing one is null in all rows. Also the columns of undeclared fields,
            `_corrupt_record`, and others, which are kept as they are.
        columns: what is read.
        undeclared: column of `df` with an undeclared field -> the field's name.

    Returns:
        The columns, `_rescued`, `_corrupt_record` and the others.
    """
    received = {name: kind for name, kind in df.dtypes if name in columns.kinds}
    raw = {name: F.col(name) if name in received else F.lit(None) for name in columns.kinds}
    rescued = {field: _shown(F.col(column)) for column, field in undeclared.items()}
    return _bronze_rows(df, columns, raw, received, (), rescued, [], F.col(CORRUPT), {*undeclared, CORRUPT})


def _bronze_rows(
    df: DataFrame,
    columns: RecordColumns,
    raw: Mapping[str, Column],
    received: Mapping[str, str],
    sound: Collection[str],
    undeclared: Mapping[str, Column],
    more: Sequence[Column],
    corrupt: Column,
    not_kept: Collection[str],
) -> DataFrame:
    """Convert the value of each column, and rescue what does not fit.

    Args:
        df: the records.
        columns: what is read.
        raw: column -> what was received for it.
        received: column -> the Spark type of that; without the columns of which nothing was received.
        sound: columns of which any text that was received can be stored.
        undeclared: undeclared field -> its value as text.
        more: JSON objects of further fields with their texts.
        corrupt: the record as text, if it cannot be parsed.
        not_kept: the columns of `df` that the rows do not have.
    """
    not_read = [name for name in df.columns if name not in {*columns.kinds, *not_kept}]
    values = {name: F.lit(None).cast(kind) for name, kind in columns.kinds.items()}
    lost, maps, read = {**undeclared}, [*more], dict[str, Column]()
    for name, received_kind in received.items():
        kind, field, at = columns.kinds[name], columns.fields.get(name, name), F.col(_read(name))
        value = with_null_values(raw[name], columns.reading(name))
        text = value.cast("string")
        if name in columns.parts:
            df = with_parts(df, _read(name), text, columns.parts[name], field)
            lost[field] = F.when(at[MISFIT] != WHOLE, _shown(value))
            maps.append(F.to_json(at[LOST]))
            values[name] = at[VALUE]
        elif is_nested(kind) and received_kind != kind:
            read[_read(name)] = read_as(text, kind, columns.reading(name))
            maps.append(F.to_json(losses(text, at, kind, path_text((field,)))))
            values[name] = at[VALUE]
        elif name in sound or (received_kind == kind and not may_not_be_stored(kind)):
            values[name] = value
        else:
            typed = value if is_nested(kind) else exact(value, received_kind, kind, columns.reading(name))
            has_texts = kind == "string" or is_nested(kind)
            read[_read(name)] = F.when(can_be_stored(typed, kind), typed) if has_texts else typed
            shown = F.to_json(value) if is_nested(kind) else _shown(value)
            lost[field] = F.when(value.isNotNull() & at.isNull(), shown)
            values[name] = at
    rows = df.withColumns(read) if read else df
    is_any = reduce(or_, (part.isNotNull() for part in (*lost.values(), *maps)), F.lit(False))
    fitting = F.to_json(F.struct(*(text.alias(field) for field, text in lost.items()))) if lost else F.lit("{}")
    rescue = F.when(is_any & corrupt.isNull(), _one_object(fitting, *maps)) if lost or maps else F.lit(None)
    stored = (value.alias(name) for name, value in values.items())
    return rows.select(*stored, rescue.cast("string").alias(RESCUED), corrupt.alias(CORRUPT), *not_read)


def _one_object(*objects: Column) -> Column:
    """Return the JSON object that has the fields of all these, of which some may be null; null if it has none.

    A filter of maps would do the same, but Spark interprets it, and with it the whole projection.
    """
    inner = (F.substring(each, F.lit(2), F.length(each) - 2) for each in objects)
    fields = F.concat_ws(",", *(F.nullif(each, F.lit("")) for each in inner))
    return F.when(fields != "", F.concat(F.lit("{"), fields, F.lit("}")))


def _shown(value: Column) -> Column:
    """Return a value as text; bytes that are not UTF-8 in base64."""
    text = value.cast("string")
    return F.when(F.is_valid_utf8(text), text).otherwise(in_base64(text.cast("binary")))


def _read(name: str) -> str:
    return f"_read_{name}"


def with_line_position(df: DataFrame) -> DataFrame:
    """Add `_position`, the record's number in its file, from 1; needs `_source_file` and `_block_start`."""
    in_file = "row_number() over (partition by _source_file order by _block_start, _order)"
    ordered = df.withColumn("_order", F.monotonically_increasing_id())
    return ordered.withColumn("_position", F.expr(in_file)).drop("_order")
