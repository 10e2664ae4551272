"""Make bronze rows from received records: cast the columns, rescue what does not fit, mark what cannot be parsed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.contracts.spec.nested_type import is_nested
from include.contracts.spec.record_fields import quoted
from spark_jobs.transforms.nested_values import MISFIT, OF_ANOTHER_TYPE, VALUE, WHOLE, holds_only_texts, read_as
from spark_jobs.transforms.record_parts import RecordColumns, with_parts

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


def _misfits(raw: Mapping[str, Column], columns: RecordColumns) -> dict[str, tuple[Column, Column]]:
    """Return what does not fit the declared columns.

    Args:
        raw: column -> received value; only columns whose values may not fit.
        columns: what is read; the values of nested types are in the columns of `_with_nested`.

    Returns:
        Field -> whether its value is of another type, and then the value as text, else null.
    """
    is_misfit = {
        name: F.col(_read(name))[MISFIT] != WHOLE
        if is_nested(columns.kinds[name])
        else value.isNotNull() & value.try_cast(columns.kinds[name]).isNull()
        for name, value in raw.items()
    }
    return {
        columns.fields.get(name, name): (is_misfit[name], F.when(is_misfit[name], _shown(value)))
        for name, value in raw.items()
    }


def rescued_values(raw: Mapping[str, Column], columns: RecordColumns, unknown: Column, has_unknown: Column) -> Column:
    """Return JSON of the values that fit no declared column: values of another type, and undeclared fields.

    Args:
        raw, columns: as for `_misfits`.
        unknown: map<string,string> of the undeclared fields.
        has_unknown: false only where that map is empty; cheap, because every row evaluates it.

    Returns:
        A JSON object of field -> value as text; null when every value fits.
    """
    misfits = _misfits(raw, columns)
    pairs = [part for field, (_, value) in misfits.items() for part in (F.lit(field), value)]
    invalid = F.map_filter(F.create_map(*pairs).cast("map<string,string>"), lambda _, value: value.isNotNull())
    everything = F.map_concat(invalid, F.coalesce(unknown, F.create_map().cast("map<string,string>")))
    is_any = reduce(or_, (is_misfit for is_misfit, _ in misfits.values()), has_unknown)
    # Most rows fit: for them Spark runs generated code only; the maps are interpreted.
    return F.when(is_any, F.nullif(F.to_json(everything), F.lit("{}")))


def parse_json(df: DataFrame, columns: RecordColumns) -> DataFrame:
    """Make bronze rows from JSON objects, one row per record.

    Args:
        df: columns `_record` (the object as text), columns that do not come from the object, and others.
        columns: what is read; `fields` has the columns that come from the object.

    Returns:
        The columns, `_rescued`, `_corrupt_record`, and the other columns of `df`. If an object
        names a field twice, the last value counts.
    """
    kinds, fields = columns.kinds, columns.fields
    others = [name for name in df.columns if name not in {RECORD, *kinds}]
    parsed = df.withColumn("_fields", _texts(fields))
    raw = {name: _value(name, fields[name], kind) if name in fields else F.col(name) for name, kind in kinds.items()}
    names = F.json_object_keys(RECORD)
    # json_object_keys is stricter than from_json (it refuses single quotes and NaN): without names, look at the map.
    known = F.array(*map(F.lit, fields.values())).cast("array<string>")
    has_unknown = names.isNull() | (F.size(F.array_except(names, known)) > 0)
    # Only a row with an undeclared field pays for a map of its record.
    unknown = F.map_filter(_every_field(), lambda name, _: ~name.isin(*fields.values()))
    rescue = rescued_values(raw, columns, F.when(has_unknown, unknown), has_unknown)
    corrupt = F.coalesce(unreadable(RECORD), F.col(f"_fields.{CORRUPT}"))
    return _bronze_columns(_with_nested(parsed, raw, columns), raw, kinds, rescue, corrupt, others)


def _texts(fields: Mapping[str, str]) -> Column:
    """Return a struct of the columns' values as text, and of the whole record, as `CORRUPT`, if it cannot be parsed."""
    columns = names = [*fields, CORRUPT]
    if [*fields.values()] != [*fields]:
        # The last name is longer than all others, so that no field has it.
        names = [*fields.values(), CORRUPT + max(fields.values(), key=len)]
    texts = F.from_json(RECORD, _struct_of_texts(names), {"columnNameOfCorruptRecord": names[-1]})
    # By position, because for Spark two fields whose names differ only in case have the same name.
    return texts if names == columns else texts.cast(_struct_of_texts(columns))


def _struct_of_texts(names: Iterable[str]) -> str:
    return f"struct<{', '.join(f'{quoted(name)}: string' for name in names)}>"


def parse_json_of_any_case(df: DataFrame, columns: RecordColumns) -> DataFrame:
    """Make bronze rows like `parse_json`, but a column also reads a field whose name differs only in case.

    If a record has several such fields, the column is null, and all of them are in `_rescued`.
    """
    kinds, fields = columns.kinds, columns.fields
    others = [name for name in df.columns if name not in {RECORD, *kinds}]
    every = df.withColumn("_fields", _every_field()).withColumn(CORRUPT, _texts({})[CORRUPT])
    names = F.transform(F.map_keys("_fields"), F.lower)
    is_repeated = F.size(F.array_distinct(names)) < F.size(names)
    repeated = F.filter(names, lambda name: F.size(F.filter(names, lambda other: other == name)) > 1)
    parsed = every.withColumn("_names", names).withColumn("_repeated", F.when(is_repeated, repeated))
    raw = {name: _only_value(F.lower(F.lit(fields[name]))) if name in fields else F.col(name) for name in kinds}
    known = F.array(*(F.lower(F.lit(field)) for field in fields.values())).cast("array<string>")
    has_unknown = F.col("_repeated").isNotNull() | (F.size(F.array_except("_names", known)) > 0)
    unknown = F.map_filter(
        "_fields", lambda name, _: ~F.array_contains(known, F.lower(name)) | _is_repeated(F.lower(name))
    )
    rescue = rescued_values(raw, columns, F.when(has_unknown, unknown), F.coalesce(has_unknown, F.lit(False)))
    corrupt = F.coalesce(unreadable(RECORD), F.col(CORRUPT))
    return _bronze_columns(_with_nested(parsed, raw, columns), raw, kinds, rescue, corrupt, others)


PARSE_JSON = {"exact": parse_json, "any_case": parse_json_of_any_case}
"""`field_names` of a source -> the function that parses its JSON records."""


def _only_value(name: Column) -> Column:
    """Return the value of the one field whose name is `name` in small letters; null if there are several."""
    at = F.array_position("_names", name).cast("int") - 1
    return F.when(~_is_repeated(name), F.get(F.map_values("_fields"), at))


def _is_repeated(name: Column) -> Column:
    return F.coalesce(F.array_contains("_repeated", name), F.lit(False))


def _every_field() -> Column:
    """Return all fields of a record, with their values as text, as map<string,string>."""
    every = F.from_json(RECORD, "map<string,string>")
    exact = F.map_zip_with(every, _by_variant("map<string,string>"), lambda _, text, digits: _exact(text, digits))
    return F.coalesce(exact, every)


def unreadable(text: str) -> Column:
    """Return text that a parser would take for a record without fields: invalid UTF-8 in base64, or blank text."""
    return F.when(~F.is_valid_utf8(text), in_base64(F.col(text).cast("binary"))).when(F.trim(text) == "", F.col(text))


def in_base64(received: Column) -> Column:
    """Return bytes that are not text as `_corrupt_record` shows them."""
    return F.concat(F.lit(_BASE64_PREFIX), F.base64(received))


def _shown(value: Column) -> Column:
    """Return a value as text; bytes that are not UTF-8 in base64."""
    text = value.cast("string")
    return F.when(F.is_valid_utf8(text), text).otherwise(in_base64(text.cast("binary")))


def is_no_text(corrupt: Column) -> Column:
    """Return true where `_corrupt_record` shows bytes in base64."""
    return corrupt.startswith(_BASE64_PREFIX)


def _value(name: str, field: str, kind: str) -> Column:
    """Return the received value of a column, as text."""
    text = F.col(f"_fields.`{name}`")
    return _exact(text, _by_variant(_struct_of_texts([field]))[field]) if "decimal" in kind else text


def _by_variant(kind: str) -> Column:
    """Return the record as a value of `kind`, read as a variant; null where variants are stricter than `from_json`."""
    return F.try_variant_get(F.try_parse_json(RECORD), "$", kind)


def _exact(text: Column, by_variant: Column) -> Column:
    """Return a value as text with every digit: `from_json` reads a fraction as a double, a variant a long integer."""
    return F.when(text.rlike("[.eE]"), F.coalesce(by_variant, text)).otherwise(text)


def nested_as_json(value: Column, received: str, declared: str | None) -> Column:
    """Return a struct, array or map as JSON, as JSON records have it; unchanged if it has the type of its column.

    Args:
        value: what a Parquet or Avro file or message has.
        received: its Spark type.
        declared: the type of the column that reads it; None for an undeclared field.
    """
    if not is_nested(received) or received == declared:
        return value
    return F.to_json(value, {**EXACT_TIMES, "ignoreNullFields": "false"})


def _with_nested(df: DataFrame, raw: Mapping[str, Column], columns: RecordColumns) -> DataFrame:
    """Add what `read_as` or `with_parts` makes of each value of a nested type, so that a row computes it once."""
    for name in (name for name in raw if name in columns.parts):
        df = with_parts(df, _read(name), raw[name], columns.parts[name])
    nested = {name: kind for name in raw if is_nested(kind := columns.kinds[name]) and name not in columns.parts}
    return df.withColumns({_read(name): read_as(raw[name], kind) for name, kind in nested.items()}) if nested else df


def _read(name: str) -> str:
    return f"_read_{name}"


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
    received, kinds = dict(df.dtypes), columns.kinds
    raw = {
        name: _castable(F.col(name), received[name], kind) if name in received else F.lit(None).cast(kind)
        for name, kind in kinds.items()
    }
    # A column that has its declared type already (Parquet) always fits, unless a text in it is not UTF-8.
    doubtful = {name: column for name, column in raw.items() if received.get(name, kinds[name]) != kinds[name]}
    rescued = _misfits(doubtful, columns)
    rescued |= {field: (F.col(column).isNotNull(), _shown(F.col(column))) for column, field in undeclared.items()}
    for name, kind in kinds.items():
        if "string" in kind and name in received and (kind == "string" or received[name] == kind):
            value = raw[name].cast(kind)
            has_texts = holds_only_texts(value, kind)
            raw[name] = F.when(has_texts, value)
            shown = F.to_json(value) if is_nested(kind) else _shown(value)
            rescued[columns.fields.get(name, name)] = (~has_texts, F.when(~has_texts, shown))
    is_any = reduce(or_, (is_there for is_there, _ in rescued.values()), F.lit(False))
    # JSON leaves out null fields. So would a filter of a map, but Spark interprets it, and so the whole projection.
    values = [value.alias(field) for field, (_, value) in rescued.items()]
    rescue = F.when(is_any, F.to_json(F.struct(*values))) if values else F.lit(None).cast("string")
    others = [name for name in received if name not in {*kinds, *undeclared, CORRUPT}]
    return _bronze_columns(_with_nested(df, doubtful, columns), raw, kinds, rescue, F.col(CORRUPT), others)


def _castable(value: Column, received: str, kind: str) -> Column:
    """Return a value unchanged where Spark has a cast between the two types, else as text."""
    bases = {type_name.partition("(")[0] for type_name in (received, kind)}
    has_cast = len(bases) == 1 or "string" in bases or any(bases <= types for types in _CASTABLE)
    return value if has_cast else value.cast("string")


_NUMBERS = {"tinyint", "smallint", "int", "bigint", "float", "double", "decimal"}
_CASTABLE = ({*_NUMBERS, "boolean"}, {*_NUMBERS, "timestamp"}, {"date", "timestamp", "timestamp_ntz"})
"""Spark has a cast between any two types of one set; for other pairs it refuses the whole query."""


def with_line_position(df: DataFrame) -> DataFrame:
    """Add `_position`, the record's number in its file, from 1; needs `_source_file` and `_block_start`."""
    in_file = "row_number() over (partition by _source_file order by _block_start, _order)"
    ordered = df.withColumn("_order", F.monotonically_increasing_id())
    return ordered.withColumn("_position", F.expr(in_file)).drop("_order")


def _bronze_columns(
    df: DataFrame,
    raw: Mapping[str, Column],
    kinds: Mapping[str, str],
    rescue: Column,
    corrupt: Column,
    others: Sequence[str],
) -> DataFrame:
    values = []
    for name, value in raw.items():
        read = F.col(_read(name)) if _read(name) in df.columns else None
        typed = value.try_cast(kinds[name]) if read is None else F.when(read[MISFIT] != OF_ANOTHER_TYPE, read[VALUE])
        values.append(typed.alias(name))
    return df.select(*values, F.when(corrupt.isNull(), rescue).alias(RESCUED), corrupt.alias(CORRUPT), *others)
