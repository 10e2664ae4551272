"""The values of Avro files with types that Spark reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import Context, Decimal
from itertools import islice
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from millrace.control.landing.formats.avro_files import open_avro
from millrace.control.landing.formats.avro_schema import AvroField
from millrace.control.landing.formats.parquet_files import METADATA
from millrace.control.landing.formats.values import MAX_PRECISION, MOST_MILLIS, interval_text, json_text, uuid_text

_BATCH_ROWS = 10_000
_EXACT = Context(prec=100_000)

Column = tuple[pa.DataType, Callable[[Any], Any]]
"""A type of Arrow, and the function that makes a value of it from a stored value that is not null."""


def avro_columns(content: BinaryIO) -> Iterator[list[pa.Array]]:
    """Yield the columns of an Avro file with types that Spark reads, batch by batch, after an empty one.

    Raises:
        ValueError: the file cannot be read to its end.
    """
    fields, records = open_avro(content)
    columns = [
        (field.name, *((pa.string(), _text) if field.is_refused else _column(field.kind, is_part=False)))
        for field in fields
    ]
    yield [pa.array([], kind) for _, kind, _ in columns]
    while batch := list(islice(records, _BATCH_ROWS)):
        try:
            arrays = [pa.array([_or_null(record[name], of) for record in batch], kind) for name, kind, of in columns]
        except (pa.ArrowException, ArithmeticError) as error:
            raise ValueError(f"it has a value that does not fit its own type ({error})") from error
        yield arrays


def needs_copy(fields: tuple[AvroField, ...]) -> bool:
    """Return whether Spark refuses a file with these fields, or reads values of them as other numbers or as bytes."""
    return any(field.name.lower() == METADATA or field.is_refused or _is_odd(field.kind) for field in fields)


def _is_odd(kind: Any) -> bool:
    if isinstance(kind, list):
        return any(map(_is_odd, kind))
    if isinstance(kind, str):
        return False
    if not isinstance(kind["type"], str):
        return _is_odd(kind["type"])
    parts = [field["kind"] for field in kind.get("fields", ())]
    parts += [kind[key] for key in ("items", "values") if key in kind]
    is_wide = kind.get("logicalType") == "decimal" and kind.get("precision", 0) > MAX_PRECISION
    return is_wide or _logical(kind) in _LOGICAL or any(map(_is_odd, parts))


def _logical(kind: dict[str, Any]) -> tuple[str, str]:
    return str(kind["type"]), kind.get("logicalType", "")


def _column(kind: Any, *, is_part: bool = True) -> Column:
    if isinstance(kind, list):
        others = [part for part in kind if part != "null"]
        return _column(others[0], is_part=is_part) if len(others) == 1 else _union(others)
    if isinstance(kind, str):
        return _TYPES[kind], _same
    if not isinstance(kind["type"], str):
        return _column(kind["type"], is_part=is_part)
    if kind["type"] == "record":
        fields = {field["name"]: _column(field["kind"]) for field in kind["fields"]}
        struct = pa.struct([(name, part) for name, (part, _) in fields.items()])
        return struct, lambda value: {name: _or_null(value[name], of) for name, (_, of) in fields.items()}
    if kind["type"] == "array":
        part, of = _column(kind["items"])
        return pa.list_(part), lambda values: [_or_null(value, of) for value in values]
    if kind["type"] == "map":
        part, of = _column(kind["values"])
        return pa.map_(pa.string(), part), lambda values: [(key, _or_null(values[key], of)) for key in values]
    if kind.get("logicalType") == "decimal":
        return _decimal(kind)
    if not is_part and _logical(kind) in _TIMES:
        return _TIMES[_logical(kind)], _same
    plain = _LOGICAL.get(_logical(kind)) or _KNOWN.get(_logical(kind))
    return plain or (_TYPES[kind["type"]], _same)


def _same(value: Any) -> Any:
    return value


def _or_null(value: Any, of: Callable[[Any], Any]) -> Any:
    return None if value is None else of(value)


def _union(parts: list[Any]) -> Column:
    """Return values of several types as text, or as the wider of two numbers."""
    if all(part in ("int", "long") for part in parts):
        return pa.int64(), _same
    if all(part in ("float", "double") for part in parts):
        return pa.float64(), _same
    types = [_PYTHON[part if isinstance(part, str) else part["type"]] for part in parts]
    # A reader does not tell which of two numbers it has read, so their values stay as they are stored.
    of_type = {kind: _column(part)[1] for kind, part in zip(types, parts, strict=True) if types.count(kind) == 1}
    return pa.string(), lambda value: _text(of_type.get(type(value), _same)(value))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)


def _decimal(kind: dict[str, Any]) -> Column:
    precision, scale = kind["precision"], kind.get("scale", 0)

    def value_of(stored: bytes) -> Decimal:
        return Decimal(int.from_bytes(stored, "big", signed=True)).scaleb(-scale, _EXACT)

    if precision > MAX_PRECISION:
        return pa.string(), lambda stored: f"{value_of(stored):f}"
    return pa.decimal128(precision, scale), value_of


def _time_text(micros: int) -> str:
    seconds, micros = divmod(micros, 1_000_000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}"


def _timestamp_text(nanos: int) -> str:
    seconds, nanos = divmod(nanos, 1_000_000_000)
    digits = f"{nanos:09}"
    return f"{datetime(1970, 1, 1) + timedelta(seconds=seconds)}.{digits.removesuffix('000')}"  # noqa: DTZ001  a text


def _millis_text(millis: int, zone: str) -> str:
    """Return a time as Spark's JSON has it; the number, if a long does not hold its microseconds."""
    return f"{np.datetime64(1000 * millis, 'us')}{zone}" if abs(millis) <= MOST_MILLIS else str(millis)


_TYPES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_PYTHON: dict[str, type] = {
    **dict.fromkeys(("string", "enum"), str),
    **dict.fromkeys(("int", "long"), int),
    **dict.fromkeys(("float", "double"), float),
    **dict.fromkeys(("bytes", "fixed"), bytes),
    **dict.fromkeys(("record", "map"), dict),
    "array": list,
    "boolean": bool,
}
"""Avro type -> the type of its values in Python."""

_NANOSECONDS = {
    ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}
_MILLIS = {
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
}
_TIMES = {**_NANOSECONDS, **_MILLIS}
"""Times that a copy may not have as microseconds, unless they are parts, which are text -> their types."""

_LOGICAL: dict[tuple[str, str], Column] = {
    **dict.fromkeys(_NANOSECONDS, (pa.string(), _timestamp_text)),
    ("int", "time-millis"): (pa.string(), lambda millis: _time_text(1000 * millis)),
    ("long", "time-micros"): (pa.string(), _time_text),
    ("fixed", "uuid"): (pa.string(), uuid_text),
    ("fixed", "duration"): (pa.string(), interval_text),
}
"""(Avro type, logical type) that Spark takes for numbers or bytes -> its column."""

_KNOWN: dict[tuple[str, str], Column] = {
    ("int", "date"): (pa.date32(), _same),
    ("long", "timestamp-millis"): (pa.string(), lambda millis: _millis_text(millis, "Z")),
    ("long", "timestamp-micros"): (pa.timestamp("us", "UTC"), _same),
    ("long", "local-timestamp-millis"): (pa.string(), lambda millis: _millis_text(millis, "")),
    ("long", "local-timestamp-micros"): (pa.timestamp("us"), _same),
}
"""Those that it reads -> their columns."""
