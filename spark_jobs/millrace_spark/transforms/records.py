"""Make bronze rows from received records: convert the values, rescue what does not fit, mark what cannot be parsed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from millrace.contracts.spec.column_types import TIMES
from millrace.contracts.spec.nested_type import is_nested
from millrace.contracts.spec.record_fields import field_text
from millrace_spark.transforms.record_parts import LOST, RecordColumns, with_parts
from millrace_spark.transforms.values.exact_values import (
    as_sent,
    can_be_stored,
    exact_but_for_year,
    in_range,
    may_not_be_stored,
    with_mark,
    with_null_values,
)
from millrace_spark.transforms.values.java_functions import java_function, with_java_functions
from millrace_spark.transforms.values.nested_values import (
    MISFIT,
    VALUE,
    WHOLE,
    fields_in,
    json_union,
    losses,
    names_for_java,
    nested_as_json,
    read_as,
)

RESCUED = "_rescued"
"""JSON of the values that fit no declared column, by their paths; null when every value fits."""

RECORD = "_record"
"""A record as text, before it is parsed."""

CORRUPT = "_corrupt_record"
"""The record as text when it cannot be parsed; null for every readable record. Never stored in bronze."""

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
        has a field several times, the last value counts, and the others are in `_rescued`.
    """
    record = fields_in(_text_of_record(), columns.fields.values(), field_names == "any_case", _with_commas(columns))
    return _json_rows(with_java_functions(df).withColumn(_FIELDS, record), columns)


def parse_json_lines(df: DataFrame, columns: RecordColumns, field_names: str) -> DataFrame:
    """Make bronze rows like `parse_json` from lines that may have several objects, one after the other."""
    names = names_for_java(columns.fields.values(), _with_commas(columns))
    records = java_function("JsonRecords", _text_of_record(), names, F.lit(field_names == "any_case"))
    return _json_rows(with_java_functions(df).select("*", F.explode_outer(records).alias(_FIELDS)), columns)


def _with_commas(columns: RecordColumns) -> list[str]:
    return [field for name, field in columns.fields.items() if columns.has_commas(name)]


def _text_of_record() -> Column:
    return F.when(F.is_valid_utf8(RECORD), F.col(RECORD))


def _json_rows(df: DataFrame, columns: RecordColumns) -> DataFrame:
    texts = {name: F.col(_FIELDS)["texts"][at] for at, name in enumerate(columns.fields)}
    received = {name: kind for name, kind in df.dtypes if name in columns.kinds} | dict.fromkeys(texts, "string")
    raw = {name: texts.get(name, F.col(name)) for name in columns.kinds}
    corrupt = F.when(F.col(_FIELDS).isNull(), unreadable(RECORD))
    more = F.col(_FIELDS)["more"]
    return _bronze_rows(df, columns, raw, received, {}, corrupt, {RECORD, _FIELDS}, columns.fields, more)


def unreadable(text: str) -> Column:
    """Return a record that cannot be parsed as `_corrupt_record` shows it: bytes that are not UTF-8 in base64."""
    return F.when(F.is_valid_utf8(text), F.col(text)).otherwise(in_base64(F.col(text).cast("binary")))


def in_base64(received: Column) -> Column:
    """Return bytes that are not text as `_corrupt_record` shows them."""
    return F.concat(F.lit(_BASE64_PREFIX), F.base64(received))


def is_no_text(corrupt: Column) -> Column:
    """Return true where `_corrupt_record` shows bytes in base64."""
    return corrupt.startswith(_BASE64_PREFIX)


def parse_columns(
    df: DataFrame, columns: RecordColumns, undeclared: Mapping[str, str], sound: Collection[str] = ()
) -> DataFrame:
    """Make bronze rows from records that have columns already (CSV, Parquet, Avro).

    Args:
        df: columns as received; a missing one is null in all rows. Also the columns of undeclared fields,
            `_corrupt_record`, and others, which are kept as they are.
        columns: what is read.
        undeclared: column of `df` with an undeclared field -> the field's path.
        sound: the columns of `df` whose texts are known to be UTF-8.

    Returns:
        The columns, `_rescued`, `_corrupt_record` and the others.
    """
    received = {name: kind for name, kind in df.dtypes if name in columns.kinds}
    raw = {name: F.col(name) if name in received else F.lit(None) for name in columns.kinds}
    raw |= {name: with_mark(raw[name], is_number=False) for name in raw if name in sound and columns.has_commas(name)}
    texts = {field: (column, F.col(column)) for column, field in undeclared.items()}
    rescued = {field: text if column in sound else shown_text(text) for field, (column, text) in texts.items()}
    return _bronze_rows(df, columns, raw, received, rescued, F.col(CORRUPT), {*undeclared, CORRUPT}, sound)


@dataclass(frozen=True)
class _ReadColumn:
    """What is read for one column.

    Attributes:
        value: the stored value, computed from `read`.
        read: what a projection before computes once, as the column `_read_<name>`; None for nothing.
        is_lost: whether the value does not fit; `shown` is then its text.
        shown: a text, or where `is_object` a JSON object of paths of parts with their texts.
        is_object: whether parts can be lost, and not only the value as a whole.
    """

    value: Column
    read: Column | None = None
    is_lost: Column | None = None
    shown: Column | None = None
    is_object: bool = False


def _read_column(
    name: str, value: Column, received: str, columns: RecordColumns, is_sound: bool, schema: StructType
) -> _ReadColumn:
    """Read a value that is received as a Spark type; `is_sound` says that it is a text, and UTF-8."""
    kind, read = columns.kinds[name], F.col(_read(name))
    if is_nested(kind):
        as_it_is = nested_as_json(value, received, None, (value, schema[name].dataType)) if received == kind else value
    if is_nested(kind) and (received != kind or columns.reading(name).null_values):
        text = as_it_is.cast("string")
        text = text if is_sound else shown_text(text)
        lost = losses(text, read, kind, field_text(columns.fields.get(name, name)), columns.reading(name))
        is_lost = read[MISFIT] != WHOLE
        return _ReadColumn(read[VALUE], read_as(text, kind, columns.reading(name)), is_lost, lost, is_object=True)
    if received == kind and (is_sound or not may_not_be_stored(kind)):
        return _ReadColumn(value)
    if is_nested(kind):
        stored = F.when(can_be_stored(value, kind), value)
        return _ReadColumn(read, stored, value.isNotNull() & read.isNull(), shown_text(as_it_is))
    typed = exact_but_for_year(value, received, kind, columns.reading(name))
    if kind == "string":
        typed = F.when(can_be_stored(typed, kind), typed)
    stored = in_range(read, kind) if kind in TIMES else read
    sent = as_sent(value.cast("string"), columns.reading(name))
    return _ReadColumn(stored, typed, value.isNotNull() & stored.isNull(), sent if is_sound else shown_text(sent))


def _bronze_rows(
    df: DataFrame,
    columns: RecordColumns,
    raw: Mapping[str, Column],
    received: Mapping[str, str],
    undeclared: Mapping[str, Column],
    corrupt: Column,
    not_kept: Collection[str],
    sound: Collection[str],
    more: Column | None = None,
) -> DataFrame:
    """Convert the value of each column, and rescue what does not fit.

    Args:
        df: the records.
        columns: what is read.
        raw: column -> what was received for it.
        received: column -> the Spark type of that; without the columns of which nothing was received.
        undeclared: path of an undeclared field -> its value as text.
        corrupt: the record as text, if it cannot be parsed.
        not_kept: the columns of `df` that the rows do not have.
        sound: the columns whose texts are known to be UTF-8.
        more: JSON of further fields with their texts.
    """
    df, schema = with_java_functions(df), df.schema
    kept = [name for name in df.columns if name not in {*columns.kinds, *not_kept}]
    values = {name: F.lit(None).cast(kind) for name, kind in columns.kinds.items()}
    lost = dict[str, tuple[Column, Column]]()
    objects = [] if more is None else [(more.isNotNull(), more)]
    before = dict[str, Column]()
    for name, kind in received.items():
        field, value = columns.fields.get(name, name), with_null_values(raw[name], columns.reading(name))
        if name in columns.parts:
            text = value if name in sound else shown_text(value)
            df, at = with_parts(df, _read(name), text, columns.parts[name], field), F.col(_read(name))
            lost[field_text(field)] = at[MISFIT] != WHOLE, text
            objects.append((at[LOST].isNotNull(), at[LOST]))
            values[name] = at[VALUE]
            continue
        column = _read_column(name, value, kind, columns, name in sound, schema)
        values[name] = column.value
        if column.read is not None:
            before[_read(name)] = column.read
        if column.is_lost is not None and column.shown is not None:
            if column.is_object:
                objects.append((column.is_lost, column.shown))
            else:
                lost[field_text(field)] = column.is_lost, column.shown
    rows = df.withColumns(before) if before else df
    fields = {field: (text.isNotNull(), text) for field, text in undeclared.items()}
    # A transform of Kafka messages may fill a column that has the name of an undeclared field.
    of_same_name = [(is_there, text.alias(field)) for field, (is_there, text) in fields.items() if field in lost]
    objects += [(is_there, F.to_json(F.struct(text))) for is_there, text in of_same_name]
    lost = fields | lost
    rescue = F.when(corrupt.isNull(), _rescued(lost, objects))
    stored = (value.alias(name) for name, value in values.items())
    return rows.select(*stored, rescue.alias(RESCUED), corrupt.alias(CORRUPT), *kept)


def _rescued(lost: Mapping[str, tuple[Column, Column]], objects: Sequence[tuple[Column, Column]]) -> Column:
    """Return one JSON object of lost values and of further objects; null if there is none of either.

    Each part is named once, because Spark would repeat its code. A filter of maps would be shorter, but Spark
    interprets it, and with it the whole projection.

    Args:
        lost: path -> (whether its value is lost, the value as text).
        objects: (whether it is there, a JSON object with at least one field).
    """
    if lost:
        texts = (F.when(is_lost, text).alias(field) for field, (is_lost, text) in lost.items())
        objects = [(_any([is_lost for is_lost, _ in lost.values()]), F.to_json(F.struct(*texts))), *objects]
    there = [F.when(is_there, json_object) for is_there, json_object in objects]
    if len(there) < 2:
        return there[0] if there else F.lit(None).cast("string")
    return F.when(_any([is_there for is_there, _ in objects]), json_union(there))


def _any(conditions: Sequence[Column]) -> Column:
    """Return whether one of the conditions holds; a chain of thousands would be too deep for Spark, and for Python."""
    middle = len(conditions) // 2
    return _any(conditions[:middle]) | _any(conditions[middle:]) if middle else conditions[0]


def shown_text(value: Column) -> Column:
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
