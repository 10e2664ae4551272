"""Values of Avro that Spark takes for others: unions for structs, times of a day and UUIDs for numbers or bytes.

Here a union's value takes its place, and the others are texts, as in plain copies of landing files.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, TypeGuard

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, NumericType, StringType, StructType

from millrace.control.landing.formats.values import MAX_PRECISION
from millrace_spark.transforms.values.exact_values import with_mark
from millrace_spark.transforms.values.java_functions import java_function
from millrace_spark.transforms.values.nested_values import EXACT_TIMES, as_json

_UNION = "millrace_union_"
"""The start of the names of a union's fields: without it they are `member0` and so on, as a record may have them."""

_LOGICAL = "millrace_logical_"
"""The start of the name of the one field of the record that `readable_schema` puts in the place of a logical type."""

_DECIMAL = f"{_LOGICAL}decimal_"
"""The start of that name for a decimal with more digits than Spark's; the digits after the point follow."""

_WITH_PARTS = (StructType, ArrayType, MapType)

UNION_OPTIONS = {"enableStableIdentifiersForUnionType": "true", "stableIdentifierPrefixForUnionType": _UNION}
"""The options with which Spark must read Avro for `plain_value`."""


def readable_schema(kind: Any) -> Any:
    """Return an Avro schema of the same bytes that tells `plain_value` the logical types that Spark does not know.

    A record of one field has the bytes of this field: such a record takes the place of each of these types. It has no
    defaults, because one of such a type would be none of the record.
    """
    return _readable(kind, count())


def _readable(kind: Any, numbers: count[int]) -> Any:
    if isinstance(kind, list):
        return [_readable(part, numbers) for part in kind]
    if not isinstance(kind, dict):
        return kind
    if field_name := _field_name(kind):
        name = f"millrace_{next(numbers)}"
        stored = {"name": f"{name}_stored", "type": kind["type"], "size": kind.get("size")}
        # The record has the name of a fixed type, by which other fields may refer to it.
        return {"name": name, **kind, "type": "record", "fields": [{"name": field_name, "type": stored}]}
    readable = {**kind, **{key: _readable(kind[key], numbers) for key in ("type", "items", "values") if key in kind}}
    if "fields" in kind:
        fields = ({key: of for key, of in field.items() if key != "default"} for field in kind["fields"])
        readable["fields"] = [{**field, "type": _readable(field.get("type"), numbers)} for field in fields]
    return readable


def _field_name(kind: dict[str, Any]) -> str:
    """Return the name of the field for a logical type that Spark does not know; empty for other types."""
    stored, logical, size = kind.get("type"), str(kind.get("logicalType")), kind.get("size")
    if stored in ("bytes", "fixed") and logical == "decimal" and kind.get("precision", 0) > MAX_PRECISION:
        return f"{_DECIMAL}{kind.get('scale', 0)}"
    return _name_of(logical) if isinstance(stored, str) and (stored, logical, size) in _TEXTS else ""


def plain_value(value: Column, kind: DataType, with_commas: bool) -> tuple[Column, str]:
    """Return a value with the value of each union and logical type in its place, and the Spark type of that.

    A union of several types becomes text, JSON if it has parts; within other values it becomes a variant. With commas,
    texts are those of `with_mark`, because a number there is not to be read like a text.
    """
    if _is_union(kind):
        return F.coalesce(*(_text(value[each.name], each.dataType, with_commas) for each in kind.fields)), "string"
    if isinstance(kind, StringType):
        return with_mark(value, is_number=False) if with_commas else value, "string"
    return _rebuilt(value, kind), "string" if _is_logical(kind) else kind.simpleString()


def exact_time(value: Column, kind: DataType) -> tuple[Column, Column, str] | None:
    """Return a time as microseconds, its text if that loses digits or cannot hold it, and what the path of that adds.

    None for types but times in nanoseconds, which are cut, and in milliseconds, which are null if they are too far.
    """
    if not _is_logical(kind) or kind.names[0] not in (*_NANOSECONDS, *_MILLIS):
        return None
    stored = value[kind.names[0]]
    if kind.names[0] in _NANOSECONDS:
        lost = F.when(stored % 1000 != 0, _nanosecond_text(stored))
        return F.timestamp_micros(_div(stored, 1000)), lost, ".nanoseconds"
    time = _time_of_millis(stored)
    return time, F.when(time.isNull(), stored.cast("string")), ""


def _is_union(kind: DataType) -> TypeGuard[StructType]:
    return isinstance(kind, StructType) and all(name.startswith(_UNION) for name in kind.names)


def _is_logical(kind: DataType) -> TypeGuard[StructType]:
    return isinstance(kind, StructType) and kind.names[0].startswith(_LOGICAL)


def _has_parts(kind: DataType) -> bool:
    return isinstance(kind, _WITH_PARTS) and not _is_logical(kind)


def _text(member: Column, kind: DataType, with_commas: bool) -> Column:
    rebuilt = _rebuilt(member, kind)
    text = as_json(rebuilt) if _has_parts(kind) else rebuilt.cast("string")
    return with_mark(text, isinstance(kind, NumericType)) if with_commas else text


def _variant(member: Column, kind: DataType) -> Column:
    rebuilt = _rebuilt(member, kind)
    return F.to_variant_object(rebuilt) if _has_parts(kind) else rebuilt.cast("variant")


def _rebuilt(value: Column, kind: DataType) -> Column:
    """Return a value in which each union is a variant, and each logical type a text; unchanged if it has none."""
    if _is_plain(kind):
        return value
    if isinstance(kind, ArrayType):
        element = kind.elementType
        return F.transform(value, lambda part: _rebuilt(part, element))
    if isinstance(kind, MapType):
        entry = kind.valueType
        return F.transform_values(value, lambda _, part: _rebuilt(part, entry))
    fields = kind.fields if isinstance(kind, StructType) else []
    if _is_union(kind):
        return F.coalesce(*(_variant(value[field.name], field.dataType) for field in fields))
    if _is_logical(kind):
        name, stored = kind.names[0], value[kind.names[0]]
        if name.startswith(_DECIMAL):
            return java_function("WideDecimal", stored, F.lit(int(name.removeprefix(_DECIMAL))))
        return F.when(stored.isNotNull(), _TEXT_OF[name](stored))
    parts = (_rebuilt(value[field.name], field.dataType).alias(field.name) for field in fields)
    return F.when(value.isNotNull(), F.struct(*parts))


def _is_plain(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return not (_is_union(kind) or _is_logical(kind)) and all(_is_plain(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _is_plain(kind.elementType)
    return not isinstance(kind, MapType) or _is_plain(kind.valueType)


def _name_of(logical_type: str) -> str:
    return _LOGICAL + logical_type.replace("-", "_")


def _div(number: Column, by: int) -> Column:
    """Return the quotient, rounded down; a decimal holds also what is below the least `bigint`."""
    wide = number.cast("decimal(20,0)")
    return F.call_function("div", wide - F.pmod(wide, F.lit(by)), F.lit(by))


def _time_text(micros: Column) -> Column:
    seconds = _div(micros, 1_000_000)
    parts = _div(seconds, 3600), F.pmod(_div(seconds, 60), F.lit(60)), F.pmod(seconds, F.lit(60))
    return F.format_string("%02d:%02d:%02d.%06d", *parts, F.pmod(micros, F.lit(1_000_000)))


def _nanosecond_text(nanos: Column) -> Column:
    micros = F.date_format(F.timestamp_micros(_div(nanos, 1000)), "yyyy-MM-dd HH:mm:ss.SSSSSS")
    return F.concat(
        micros, F.when(nanos % 1000 == 0, "").otherwise(F.format_string("%03d", F.pmod(nanos, F.lit(1000))))
    )


def _time_of_millis(millis: Column) -> Column:
    return F.timestamp_micros(F.try_multiply(millis, F.lit(1000)))


def _millis_text(millis: Column, time_format: str) -> Column:
    return F.coalesce(F.date_format(_time_of_millis(millis), time_format), millis.cast("string"))


def _uuid_text(stored: Column) -> Column:
    return F.regexp_replace(F.lower(F.hex(stored)), "(.{8})(.{4})(.{4})(.{4})(.{12})", "$1-$2-$3-$4-$5")


def _duration_text(stored: Column) -> Column:
    numbers = (F.concat(*(F.substring(stored, at + byte, 1) for byte in (3, 2, 1, 0))) for at in (1, 5, 9))
    months, days, millis = (F.conv(F.hex(number), 16, 10) for number in numbers)
    seconds = F.regexp_replace((millis.cast("bigint") / F.lit(1000)).cast("string"), r"\.?0+$", "")
    return F.concat(F.lit("P"), months, F.lit("M"), days, F.lit("DT"), seconds, F.lit("S"))


_TEXTS: dict[tuple[str, str, int | None], Callable[[Column], Column]] = {
    ("int", "time-millis", None): lambda millis: _time_text(millis.cast("bigint") * 1000),
    ("long", "time-micros", None): _time_text,
    ("long", "timestamp-nanos", None): _nanosecond_text,
    ("long", "local-timestamp-nanos", None): _nanosecond_text,
    ("long", "timestamp-millis", None): lambda millis: _millis_text(millis, EXACT_TIMES["timestampFormat"]),
    ("long", "local-timestamp-millis", None): lambda millis: _millis_text(millis, EXACT_TIMES["timestampNTZFormat"]),
    ("fixed", "uuid", 16): _uuid_text,
    ("fixed", "duration", 12): _duration_text,
}
"""(Avro type, logical type, size) that Spark takes for numbers or bytes, or may not read -> its value as text."""

_TEXT_OF = {_name_of(logical_type): text for (_, logical_type, _), text in _TEXTS.items()}
_NANOSECONDS = [name for name in _TEXT_OF if name.endswith("nanos")]
_MILLIS = [name for name in _TEXT_OF if name.endswith("timestamp_millis")]
