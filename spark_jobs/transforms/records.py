"""Make bronze rows from received records: cast the columns, rescue what does not fit, mark what cannot be parsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

RESCUED = "_rescued"
"""JSON of the values that fit no declared column; null when every value fits."""

RECORD = "_record"
"""A record as text, before it is parsed."""

CORRUPT = "_corrupt_record"
"""The record as text when it cannot be parsed; null for every readable record. Never stored in bronze."""

_BASE64_PREFIX = "no text, in base64: "
"""The start of `_corrupt_record` where the record's bytes are not text."""


def rescued_values(raw: Mapping[str, Column], kinds: Mapping[str, str], unknown: Column, has_unknown: Column) -> Column:
    """Return JSON of the values that fit no declared column: values of another type, and undeclared fields.

    Args:
        raw: declared column -> received value; only columns whose values may not fit.
        kinds: declared column -> its type.
        unknown: map<string,string> of the undeclared fields.
        has_unknown: false only where that map is empty; cheap, because every row evaluates it.

    Returns:
        A JSON object of field -> value as text; null when every value fits.
    """
    is_invalid = {name: value.isNotNull() & value.try_cast(kinds[name]).isNull() for name, value in raw.items()}
    pairs = [
        part for name, value in raw.items() for part in (F.lit(name), F.when(is_invalid[name], value.cast("string")))
    ]
    invalid = F.map_filter(F.create_map(*pairs).cast("map<string,string>"), lambda _, value: value.isNotNull())
    everything = F.map_concat(invalid, F.coalesce(unknown, F.create_map().cast("map<string,string>")))
    # Most rows fit: for them Spark runs generated code only; the maps are interpreted.
    return F.when(reduce(or_, is_invalid.values(), has_unknown), F.nullif(F.to_json(everything), F.lit("{}")))


def parse_json(df: DataFrame, kinds: Mapping[str, str]) -> DataFrame:
    """Make bronze rows from JSON objects, one row per record.

    Args:
        df: columns `_record` (the object as text), declared columns that do not come from the object, and others.
        kinds: declared column -> type.

    Returns:
        The declared columns, `_rescued`, `_corrupt_record`, and the other columns of `df`. If an object
        names a field twice, the last value counts.
    """
    fields = {name: kind for name, kind in kinds.items() if name not in df.columns}
    others = [name for name in df.columns if name not in {RECORD, *kinds}]
    texts = ", ".join(f"`{name}`: string" for name in (*fields, CORRUPT))
    parsed = df.withColumn("_fields", F.from_json(RECORD, f"struct<{texts}>", {"columnNameOfCorruptRecord": CORRUPT}))
    raw = {name: _field(name, kind) if name in fields else F.col(name) for name, kind in kinds.items()}
    names = F.json_object_keys(RECORD)
    # json_object_keys is stricter than from_json (it refuses single quotes and NaN): without names, look at the map.
    has_unknown = names.isNull() | (
        F.size(F.array_except(names, F.array(*map(F.lit, fields)).cast("array<string>"))) > 0
    )
    # Only a row with an undeclared field pays for a map of its record.
    every = F.from_json(RECORD, "map<string,string>")
    exact = F.map_zip_with(every, _by_variant("map<string,string>"), lambda _, text, digits: _exact(text, digits))
    unknown = F.map_filter(F.coalesce(exact, every), lambda name, _: ~name.isin(*fields))
    rescue = rescued_values(raw, kinds, F.when(has_unknown, unknown), has_unknown)
    corrupt = F.coalesce(unreadable(RECORD), F.col(f"_fields.{CORRUPT}"))
    return _bronze_columns(parsed, raw, kinds, rescue, corrupt, others)


def unreadable(text: str) -> Column:
    """Return text that a parser would take for a record without fields: invalid UTF-8 in base64, or blank text."""
    return F.when(~F.is_valid_utf8(text), in_base64(F.col(text).cast("binary"))).when(F.trim(text) == "", F.col(text))


def in_base64(received: Column) -> Column:
    """Return bytes that are not text as `_corrupt_record` shows them."""
    return F.concat(F.lit(_BASE64_PREFIX), F.base64(received))


def is_no_text(corrupt: Column) -> Column:
    """Return true where `_corrupt_record` shows bytes in base64."""
    return corrupt.startswith(_BASE64_PREFIX)


def _field(name: str, kind: str) -> Column:
    text = F.col(f"_fields.`{name}`")
    return _exact(text, _by_variant(f"struct<`{name}`: string>")[name]) if kind.startswith("decimal") else text


def _by_variant(kind: str) -> Column:
    """Return the record as a value of `kind`, read as a variant; null where variants are stricter than `from_json`."""
    return F.try_variant_get(F.try_parse_json(RECORD), "$", kind)


def _exact(text: Column, by_variant: Column) -> Column:
    """Return a value as text with every digit: `from_json` reads a fraction as a double, a variant a long integer."""
    return F.when(text.rlike("[.eE]"), F.coalesce(by_variant, text)).otherwise(text)


def nested_as_json(df: DataFrame) -> DataFrame:
    """Turn structs, arrays and maps into JSON: bronze stores a nested field of a JSON record in that form, too."""
    columns = []
    for name, kind in df.dtypes:
        value = column_named(name)
        is_nested = kind.startswith(("struct<", "array<", "map<"))
        columns.append(F.to_json(value, {"ignoreNullFields": "false"}).alias(name) if is_nested else value)
    return df.select(*columns)


def parse_columns(df: DataFrame, kinds: Mapping[str, str], others: Sequence[str]) -> DataFrame:
    """Make bronze rows from records that have columns already (CSV, Parquet, Avro).

    Args:
        df: the files' columns as received, `_corrupt_record`, and `others`; a declared column that is missing is null.
        kinds: declared column -> type.
        others: columns of `df` that are kept as they are.

    Returns:
        The declared columns, `_rescued`, `_corrupt_record` and `others`.
    """
    received = dict(df.dtypes)
    raw = {
        name: _castable(column_named(name), received[name], kind) if name in received else F.lit(None).cast("string")
        for name, kind in kinds.items()
    }
    # A column that has its declared type already (Parquet) always fits.
    doubtful = {name: column for name, column in raw.items() if received.get(name, kinds[name]) != kinds[name]}
    extra = [name for name in received if name not in {*kinds, *others, CORRUPT}]
    pairs = [part for name in extra for part in (F.lit(name), column_named(name).cast("string"))]
    unknown = F.map_filter(F.create_map(*pairs).cast("map<string,string>"), lambda _, value: value.isNotNull())
    has_unknown = reduce(or_, (column_named(name).isNotNull() for name in extra), F.lit(False))
    rescue = rescued_values(doubtful, kinds, unknown, has_unknown)
    return _bronze_columns(df, raw, kinds, rescue, F.col(CORRUPT), others)


def column_named(name: str) -> Column:
    """Return the column of this name, which may contain any character."""
    return F.col("`" + name.replace("`", "``") + "`")


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
    values = [value.try_cast(kinds[name]).alias(name) for name, value in raw.items()]
    return df.select(*values, F.when(corrupt.isNull(), rescue).alias(RESCUED), corrupt.alias(CORRUPT), *others)
