"""Unions of Avro: Spark reads one as a struct with a field for each of its types; here its value takes its place."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, NumericType, StructType

from spark_jobs.transforms.values.exact_values import with_mark
from spark_jobs.transforms.values.nested_values import as_json

_PREFIX = "millrace_union_"
"""The start of the names of a union's fields: without it they are `member0` and so on, as a record may have them."""

_WITH_PARTS = (StructType, ArrayType, MapType)

UNION_OPTIONS = {"enableStableIdentifiersForUnionType": "true", "stableIdentifierPrefixForUnionType": _PREFIX}
"""The options with which Spark must read Avro for `without_unions`."""


def without_unions(value: Column, kind: DataType, with_commas: bool) -> tuple[Column, str]:
    """Return a value with the value of each union in its place, and the Spark type of that.

    A union of several types becomes text, JSON if it has parts; within other values it becomes a variant. With commas,
    a number there gets a mark, because it is not to be read like the texts of a column whose numbers have commas.
    """
    if isinstance(kind, StructType) and _is_union(kind):
        return F.coalesce(*(_text(value[each.name], each.dataType, with_commas) for each in kind.fields)), "string"
    return _rebuilt(value, kind), kind.simpleString()


def _is_union(kind: DataType) -> bool:
    return isinstance(kind, StructType) and all(name.startswith(_PREFIX) for name in kind.names)


def _text(member: Column, kind: DataType, with_commas: bool) -> Column:
    rebuilt = _rebuilt(member, kind)
    text = as_json(rebuilt) if isinstance(kind, _WITH_PARTS) else rebuilt.cast("string")
    return with_mark(text) if with_commas and isinstance(kind, NumericType) else text


def _variant(member: Column, kind: DataType) -> Column:
    rebuilt = _rebuilt(member, kind)
    return F.to_variant_object(rebuilt) if isinstance(kind, _WITH_PARTS) else rebuilt.cast("variant")


def _rebuilt(value: Column, kind: DataType) -> Column:
    """Return a value in which each union is a variant; unchanged if it has none."""
    if not _has_unions(kind):
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
    parts = (_rebuilt(value[field.name], field.dataType).alias(field.name) for field in fields)
    return F.when(value.isNotNull(), F.struct(*parts))


def _has_unions(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return _is_union(kind) or any(_has_unions(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _has_unions(kind.elementType)
    return isinstance(kind, MapType) and _has_unions(kind.valueType)
