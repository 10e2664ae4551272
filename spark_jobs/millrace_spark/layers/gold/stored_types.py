"""The types of the columns of a computed table: not all of Spark's can be stored, or read by every reader."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    CalendarIntervalType,
    DataType,
    DayTimeIntervalType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    VariantType,
    YearMonthIntervalType,
)

from millrace.errors import SpecError
from millrace.sql.query.reader_types import TIMESTAMP_NTZ, VARIANT, WAY_OUT

_NOT_STORED = "which Delta does not store"
_NEW_READER = "which needs a newer reader"
_WHY: dict[type[DataType], tuple[str, str]] = {
    DayTimeIntervalType: (_NOT_STORED, "write a number, such as timestampdiff(SECOND, <start>, <end>)"),
    CalendarIntervalType: (_NOT_STORED, "write the numbers that it is made of"),
    YearMonthIntervalType: (_NOT_STORED, "write a number, such as timestampdiff(MONTH, <start>, <end>)"),
    NullType: (_NOT_STORED, "it is always NULL: give it a type, such as cast(NULL AS string)"),
    StringType: (_NOT_STORED, "write collate(<text>, 'UTF8_BINARY')"),
    TimestampNTZType: (_NEW_READER, WAY_OUT[TIMESTAMP_NTZ]),
    VariantType: (_NEW_READER, WAY_OUT[VARIANT]),
}
"""Type that Delta 4.4 does not store for any reader -> why not, and the way out; text only if it has a collation."""


def require_stored_types(table: str, schema: StructType) -> None:
    """Check that Delta can store the columns of a table, so that every reader can read them.

    Args:
        table: the table.
        schema: its columns.

    Raises:
        SpecError: it cannot; the message names a column and the way out.

    >>> require_stored_types("gold.stays", StructType().add("guest", "string").add("nights", ArrayType(StringType())))
    >>> require_stored_types("gold.stay", StructType().add("at", ArrayType(TimestampNTZType())))
    Traceback (most recent call last):
        ...
    millrace.errors.SpecError: gold.stay: column at is of the type array<timestamp_ntz>, which needs a newer reader
    Write cast(<value> AS timestamp).
    """
    for column in schema.fields:
        for part in _parts(column.dataType):
            why = _WHY.get(type(part))
            if why and not (isinstance(part, StringType) and part.isUTF8BinaryCollation()):
                cause = f"{table}: column {column.name} is of the type {column.dataType.simpleString()}, {why[0]}"
                raise SpecError(cause, f"{why[1][0].upper()}{why[1][1:]}.")


def _parts(kind: DataType) -> Iterator[DataType]:
    """Yield the types of the values that a type holds, or the type itself."""
    match kind:
        case StructType():
            for field in kind.fields:
                yield from _parts(field.dataType)
        case ArrayType():
            yield from _parts(kind.elementType)
        case MapType():
            yield from _parts(kind.keyType)
            yield from _parts(kind.valueType)
        case _:
            yield kind


def has_order(kind: DataType) -> bool:
    """Whether Spark can sort by a type, and Delta has its least and greatest value for each file."""
    return isinstance(kind, AtomicType) and not isinstance(kind, VariantType)
