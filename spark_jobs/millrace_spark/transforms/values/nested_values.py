"""Read JSON text as values of nested types: structs, arrays and maps."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from functools import reduce
from operator import and_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from millrace.contracts.spec.nested_type import is_nested, nested_type
from millrace.contracts.spec.value_reading import ValueReading
from millrace_spark.transforms.values.exact_values import as_sent, exact, with_null_values
from millrace_spark.transforms.values.java_functions import java_function

VALUE = "value"
MISFIT = "misfit"
"""The fields of what `read_as` returns."""

WHOLE, HAS_MORE, OF_ANOTHER_TYPE = 0, 1, 2
"""How a text fits a type: whole; but for fields that a struct in it does not have; not, as a whole or in a part."""


EXACT_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Options of JSON: Spark's default format leaves microseconds out."""


Sent = tuple[Column, DataType]
"""A value and its type."""


def read_as(text: Column, kind: str, reading: ValueReading) -> Column:
    """Return text, JSON if the type is nested, as a value of the type, and how it fits.

    Each part is read like the value of a column: a number may be a text.

    Returns:
        A struct: `value`, in which the parts that do not fit are null; `misfit`: `WHOLE`, `HAS_MORE` or
        `OF_ANOTHER_TYPE`.
    """
    text = with_null_values(text, reading)
    if not is_nested(kind):
        return bound(
            exact(text, "string", kind, reading),
            lambda value: result(value, F.when(text.isNotNull() & value.isNull(), OF_ANOTHER_TYPE).otherwise(WHOLE)),
        )
    nested = nested_type(kind)
    if nested.kind == "struct":
        return _struct_in(text, dict(nested.parts), reading)
    (part,) = nested.parts.values()
    if nested.kind == "array":
        elements = F.transform(
            elements_in(text, reading.decimal_comma), lambda element: read_as(element, part, reading)
        )
        return bound(elements, lambda read: _collection(text, F.transform(read, lambda each: each[VALUE]), read))
    values = F.transform_values(_map_in(text, reading.decimal_comma), lambda _, value: read_as(value, part, reading))
    return bound(
        values,
        lambda read: _collection(text, F.transform_values(read, lambda _, each: each[VALUE]), F.map_values(read)),
    )


def losses(text: Column, read: Column, kind: str, path: str, reading: ValueReading) -> Column:
    """Return JSON: path of each part of a text that `read_as` has not read -> its text; null for none.

    Args:
        text: what was read.
        read: the result of `read_as`.
        kind: the type.
        path: the path of the text in its record.
        reading: how it was read; a text that means that there is no value is not lost.
    """
    nulls = F.lit(json.dumps(reading.null_values))
    stored = F.to_json(read[VALUE], {"ignoreNullFields": "false"}) if is_nested(kind) else F.lit(None).cast("string")
    return F.when(
        read[MISFIT] != WHOLE, java_function("JsonLosses", as_sent(text, reading), stored, F.lit(path), nulls)
    )


def json_union(objects: Iterable[Column]) -> Column:
    """Return one JSON object of the fields of several; a field with several texts has a JSON array of them."""
    return java_function("JsonUnion", F.concat_ws("", *objects))


def fields_in(text: Column, names: Iterable[str], any_case: bool = False, with_commas: Collection[str] = ()) -> Column:
    """Return a struct of an object: `texts` of the fields, and `more`, JSON of the others; null for other JSON.

    Args:
        text: the JSON.
        names: the fields.
        any_case: whether names that differ only in upper and lower case are the same.
        with_commas: the fields whose numbers have commas in strings, so that other numbers get a mark.
    """
    return java_function("JsonRecord", text, names_for_java(names, with_commas), F.lit(any_case))


def names_for_java(names: Iterable[str], with_commas: Collection[str]) -> Column:
    """Return names of fields as `JsonRecords` takes them."""
    return F.lit(json.dumps([[name] if name in with_commas else name for name in names]))


def elements_in(text: Column, with_commas: bool) -> Column:
    """Return the texts of an array's elements, as array<string>; null for other JSON."""
    return java_function("JsonList", text, F.lit(with_commas))


def _map_in(text: Column, with_commas: bool) -> Column:
    return java_function("JsonMap", text, F.lit(with_commas))


def nested_as_json(value: Column, received: str, declared: str | None, sent: Sent | None = None) -> Column:
    """Return a struct, array or map as JSON, as JSON records have it; unchanged if it has the type of its column.

    JSON would hide bytes that are no UTF-8: a value with such a text becomes its bytes, which are no JSON.

    Args:
        value: what a Parquet or Avro file or message has.
        received: its Spark type.
        declared: the type of the column that reads it; None for an undeclared field.
        sent: the value as Spark reads it, and its type; needed where it may also have binary parts.
    """
    if not is_nested(received) or received == declared:
        return value
    if sent and ("binary" in received or "variant" in received):
        return F.when(_are_texts(*sent), as_json(value)).otherwise(sent[0].cast("string"))
    if "string" not in received or "binary" in received:
        return as_json(value)
    text = value.cast("string")
    return F.when(F.is_valid_utf8(text), as_json(value)).otherwise(text)


def _are_texts(value: Column, kind: DataType) -> Column:
    """Return whether each text in a value is UTF-8; true for null."""
    if isinstance(kind, StringType):
        are_texts = F.is_valid_utf8(value)
    elif isinstance(kind, ArrayType):
        are_texts = F.forall(value, lambda part: _are_texts(part, kind.elementType))
    elif isinstance(kind, MapType):
        keys = F.forall(F.map_keys(value), lambda key: _are_texts(key, kind.keyType))
        are_texts = keys & F.forall(F.map_values(value), lambda part: _are_texts(part, kind.valueType))
    elif isinstance(kind, StructType):
        are_texts = reduce(and_, (_are_texts(value[part.name], part.dataType) for part in kind.fields), F.lit(True))
    else:
        return F.lit(True)
    return F.coalesce(are_texts, F.lit(True))


def as_json(value: Column) -> Column:
    """Return a struct, array or map as JSON, with its nulls."""
    return F.to_json(value, {**EXACT_TIMES, "ignoreNullFields": "false"})


def with_sorted_maps(value: Column, kind: str) -> Column:
    """Return a value of a nested type with the entries of each map by their keys, so that equal maps look the same."""
    if "map<" not in kind:
        return value
    nested = nested_type(kind)
    if nested.kind == "struct":
        parts = (with_sorted_maps(value[name], part).alias(name) for name, part in nested.parts.items())
        return F.when(value.isNotNull(), F.struct(*parts))
    (part,) = nested.parts.values()
    if nested.kind == "array":
        return F.transform(value, lambda element: with_sorted_maps(element, part))
    keys = F.array_sort(F.map_keys(value))
    return F.map_from_arrays(keys, F.transform(keys, lambda key: with_sorted_maps(value[key], part)))


def _struct_in(text: Column, parts: dict[str, str], reading: ValueReading) -> Column:
    def of_read(read: Column) -> Column:
        value = F.struct(*(read[f"_{at}"][VALUE].alias(name) for at, name in enumerate(parts)))
        misfits = F.greatest(read[MISFIT], *(read[f"_{at}"][MISFIT] for at in range(len(parts))))
        is_struct = read[MISFIT] != OF_ANOTHER_TYPE
        return result(F.when(is_struct, value), F.when(text.isNull(), WHOLE).otherwise(misfits))

    def of_record(record: Column) -> Column:
        misfit = F.when(record.isNull(), OF_ANOTHER_TYPE).when(record["more"].isNotNull(), HAS_MORE).otherwise(WHOLE)
        texts = ((at, part, record["texts"][at]) for at, part in enumerate(parts.values()))
        values = ((F.lit(f"_{at}"), read_as(part_text, part, reading)) for at, part, part_text in texts)
        # Less deep than a struct of aliases: Spark Connect takes no expression deeper than the deepest type makes it.
        return bound(F.named_struct(*(part for pair in values for part in pair), F.lit(MISFIT), misfit), of_read)

    return bound(fields_in(text, parts, with_commas=parts if reading.decimal_comma else ()), of_record)


def _collection(text: Column, value: Column, read: Column) -> Column:
    """Return the result for an array or a map with these parts, which are null if the text has another kind."""
    greatest = F.coalesce(F.array_max(F.transform(read, lambda each: each[MISFIT])), F.lit(WHOLE))
    misfit = F.when(text.isNull(), WHOLE).when(read.isNull(), OF_ANOTHER_TYPE).otherwise(greatest)
    return result(value, misfit)


def result(value: Column, misfit: Column) -> Column:
    """Return a value and how it fits, as `read_as` does."""
    return F.named_struct(F.lit(VALUE), value, F.lit(MISFIT), misfit)


def bound(value: Column, use: Callable[[Column], Column]) -> Column:
    """Return `use` of a value that is computed once, however often `use` needs it."""
    return F.transform(F.array(value), use)[0]
