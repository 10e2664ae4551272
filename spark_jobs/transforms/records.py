"""From records as received to bronze rows: columns typed, what does not fit them rescued, the rest marked corrupt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

RESCUED = "_rescued"
"""JSON of the values that fit no declared column; null when everything fitted."""

RECORD = "_record"
"""A record as text, before it is parsed."""

CORRUPT = "_corrupt_record"
"""The record as text when it cannot be parsed; null for every sound row. Never stored in bronze."""

_NO_TEXT = "no text, in base64: "
"""What such a record begins with where its bytes are no text."""


def typed(raw: Column, kind: str) -> Column:
    """`raw` as a value of the Spark type `kind`; null where it does not fit."""
    return raw.try_cast(kind)


def rescued(raw: Mapping[str, Column], kinds: Mapping[str, str], unknown: Column, has_unknown: Column) -> Column:
    """JSON of the values that fit no declared column: those of another type, and those of undeclared fields.

    Args:
        raw: declared column -> its value as received, of the columns whose values may not fit.
        kinds: declared column -> its type.
        unknown: map<string,string> of the fields that no column is declared for.
        has_unknown: false only where that map has no entry; cheap, since it is asked of every row.

    Returns:
        A JSON object of field -> value as text, null when everything fitted.
    """
    misfits = {name: value.isNotNull() & typed(value, kinds[name]).isNull() for name, value in raw.items()}
    pairs = [part for name, value in raw.items() for part in (F.lit(name), F.when(misfits[name], value.cast("string")))]
    unfit = F.map_filter(F.create_map(*pairs).cast("map<string,string>"), lambda _, value: value.isNotNull())
    everything = F.map_concat(unfit, F.coalesce(unknown, F.create_map().cast("map<string,string>")))
    # Most rows fit: they take generated code, and never reach the maps, which are interpreted.
    return F.when(reduce(or_, misfits.values(), has_unknown), F.nullif(F.to_json(everything), F.lit("{}")))


def parse_json(df: DataFrame, kinds: Mapping[str, str]) -> DataFrame:
    """Rows from JSON objects, one a record.

    Args:
        df: columns `_record` (the object as text), declared columns that are not taken from it, and others.
        kinds: declared column -> type.

    Returns:
        The declared columns, `_rescued`, `_corrupt_record`, and the other columns of `df`. Of a field that an object
        names twice, the last one counts.
    """
    fields = {name: kind for name, kind in kinds.items() if name not in df.columns}
    others = [name for name in df.columns if name not in {RECORD, *kinds}]
    parsed = df.withColumn("_fields", _declared_fields(fields))
    raw = {name: _field(name, kind) if name in fields else F.col(name) for name, kind in kinds.items()}
    names = F.json_object_keys(RECORD)
    # No names: json_object_keys is stricter than from_json (it refuses single quotes, NaN), so look at the map itself.
    has_unknown = names.isNull() | (
        F.size(F.array_except(names, F.array(*map(F.lit, fields)).cast("array<string>"))) > 0
    )
    # Only a row with a field that nobody declared pays for a map of its line.
    unknown = F.map_filter(_all_fields(), lambda name, _: ~name.isin(*fields))
    rescue = rescued(raw, kinds, F.when(has_unknown, unknown), has_unknown)
    corrupt = F.coalesce(unreadable(RECORD), F.col(f"_fields.{CORRUPT}"))
    return _bronze_columns(parsed, raw, kinds, rescue, corrupt, others)


def unreadable(text: str) -> Column:
    """Text in which a parser would see a record without fields: marked and in base64 if it is no UTF-8, else blank."""
    return F.when(~F.is_valid_utf8(text), in_base64(F.col(text).cast("binary"))).when(F.trim(text) == "", F.col(text))


def in_base64(received: Column) -> Column:
    """Bytes that are no text, as a refused record shows them."""
    return F.concat(F.lit(_NO_TEXT), F.base64(received))


def is_no_text(corrupt: Column) -> Column:
    """Whether `_corrupt_record` shows bytes in base64."""
    return corrupt.startswith(_NO_TEXT)


def _declared_fields(kinds: Mapping[str, str]) -> Column:
    """A struct of the declared fields as text, and `_corrupt_record` with the whole line where it cannot be parsed."""
    fields = ", ".join(f"`{name}`: string" for name in (*kinds, CORRUPT))
    return F.from_json(RECORD, f"struct<{fields}>", {"columnNameOfCorruptRecord": CORRUPT})


def _all_fields() -> Column:
    """A map of the line's fields as text."""
    fields = F.from_json(RECORD, "map<string,string>")
    exact = F.map_zip_with(fields, _by_variant("map<string,string>"), lambda _, text, digits: _exact(text, digits))
    return F.coalesce(exact, fields)


def _field(name: str, kind: str) -> Column:
    text = F.col(f"_fields.`{name}`")
    return _exact(text, _by_variant(f"struct<`{name}`: string>")[name]) if kind.startswith("decimal") else text


def _by_variant(kind: str) -> Column:
    """The line as a value of `kind`, read as a variant; null where variants are stricter than `from_json`."""
    return F.try_variant_get(F.try_parse_json(RECORD), "$", kind)


def _exact(text: Column, by_variant: Column) -> Column:
    """A value as text with every digit: `from_json` takes a fraction through a double, a variant a long integer."""
    return F.when(text.rlike("[.eE]"), F.coalesce(by_variant, text)).otherwise(text)


def nested_as_json(df: DataFrame) -> DataFrame:
    """The frame with its structs, arrays and maps as JSON: what a nested field of a JSON record is in bronze, too."""
    columns = []
    for name, kind in df.dtypes:
        value = column_named(name)
        is_nested = kind.startswith(("struct<", "array<", "map<"))
        columns.append(F.to_json(value, {"ignoreNullFields": "false"}).alias(name) if is_nested else value)
    return df.select(*columns)


def parse_columns(df: DataFrame, kinds: Mapping[str, str], others: Sequence[str]) -> DataFrame:
    """Rows from files that have columns of their own (CSV, Parquet, Avro).

    Args:
        df: the files' columns as received, `_corrupt_record`, and `others`; a declared column that it lacks is null.
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
    # What has its declared type already (Parquet) need not be looked through, record by record.
    doubtful = {name: column for name, column in raw.items() if received.get(name, kinds[name]) != kinds[name]}
    extra = [name for name in received if name not in {*kinds, *others, CORRUPT}]
    pairs = [part for name in extra for part in (F.lit(name), column_named(name).cast("string"))]
    unknown = F.map_filter(F.create_map(*pairs).cast("map<string,string>"), lambda _, value: value.isNotNull())
    has_unknown = reduce(or_, (column_named(name).isNotNull() for name in extra), F.lit(False))
    rescue = rescued(doubtful, kinds, unknown, has_unknown)
    return _bronze_columns(df, raw, kinds, rescue, F.col(CORRUPT), others)


def column_named(name: str) -> Column:
    """A column whose name may have any character."""
    return F.col("`" + name.replace("`", "``") + "`")


def _castable(value: Column, received: str, kind: str) -> Column:
    """A value as it is where Spark has a cast between the two types, else as text, which every type is tried of."""
    bases = {_base(received), _base(kind)}
    has_cast = len(bases) == 1 or "string" in bases or any(bases <= types for types in _CASTABLE)
    return value if has_cast else value.cast("string")


def _base(kind: str) -> str:
    return kind.partition("(")[0]


_NUMBERS = {"tinyint", "smallint", "int", "bigint", "float", "double", "decimal"}
_CASTABLE = ({*_NUMBERS, "boolean"}, {*_NUMBERS, "timestamp"}, {"date", "timestamp", "timestamp_ntz"})
"""Between any two types of one set Spark has a cast; between others it refuses the whole query."""


def with_line_position(df: DataFrame) -> DataFrame:
    """Add `_position`, the record's number within its file from 1 on; needs `_source_file` and `_block_start`."""
    in_file = "row_number() over (partition by _source_file order by _block_start, _order)"
    return (
        df.withColumn("_order", F.monotonically_increasing_id()).withColumn("_position", F.expr(in_file)).drop("_order")
    )


def _bronze_columns(
    df: DataFrame,
    raw: Mapping[str, Column],
    kinds: Mapping[str, str],
    rescue: Column,
    corrupt: Column,
    others: Sequence[str],
) -> DataFrame:
    values = [typed(value, kinds[name]).alias(name) for name, value in raw.items()]
    return df.select(
        *values,
        F.when(corrupt.isNull(), rescue).alias(RESCUED),
        corrupt.alias(CORRUPT),
        *others,
    )
