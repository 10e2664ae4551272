"""Read JSON text as values of nested types: structs, arrays and maps."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import and_

from pyspark.sql import Column
from pyspark.sql import functions as F

from include.contracts.spec.nested_type import is_nested, nested_type

VALUE = "value"
MISFIT = "misfit"
"""The fields of what `read_as` returns."""

WHOLE, HAS_MORE, OF_ANOTHER_TYPE = 0, 1, 2
"""How a text fits a type: whole; whole but for fields that a struct in it does not have; not."""


def read_as(text: Column, kind: str) -> Column:
    """Return text, JSON if the type is nested, as a value of the type, and how it fits.

    Each part is read like the value of a column: a number may be a text.

    Returns:
        A struct: `value`, without the parts that do not fit; `misfit`: `WHOLE`, `HAS_MORE` or `OF_ANOTHER_TYPE`.
    """
    if not is_nested(kind):
        value = text.try_cast(kind)
        return result(value, F.when(text.isNotNull() & value.isNull(), OF_ANOTHER_TYPE).otherwise(WHOLE))
    nested = nested_type(kind)
    if nested.kind == "struct":
        return _struct_in(text, dict(nested.parts), kind)
    (part,) = nested.parts.values()
    if nested.kind == "array":
        elements = F.transform(parsed(text, "array<string>", kind), lambda element: read_as(element, part))
        return bound(elements, lambda read: _collection(text, F.transform(read, lambda each: each[VALUE]), read))
    values = F.transform_values(parsed(text, "map<string,string>", kind), lambda _, value: read_as(value, part))
    return bound(
        values,
        lambda read: _collection(text, F.transform_values(read, lambda _, each: each[VALUE]), F.map_values(read)),
    )


def holds_only_texts(value: Column, kind: str) -> Column:
    """Return whether every text in a value of a type is UTF-8, as each should be; null values have none that is not."""
    if kind == "string":
        return F.coalesce(F.is_valid_utf8(value), F.lit(True))
    if not is_nested(kind):
        return F.lit(True)
    nested = nested_type(kind)
    if nested.kind == "struct":
        return reduce(and_, (holds_only_texts(value[name], part) for name, part in nested.parts.items()))
    (part,) = nested.parts.values()
    if nested.kind == "array":
        return F.coalesce(F.forall(value, lambda element: holds_only_texts(element, part)), F.lit(True))
    keys = F.forall(F.map_keys(value), lambda key: F.is_valid_utf8(key))
    values = F.forall(F.map_values(value), lambda element: holds_only_texts(element, part))
    return F.coalesce(keys & values, F.lit(True))


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


def _struct_in(text: Column, parts: dict[str, str], kind: str) -> Column:
    names = F.json_object_keys(text)
    further = F.size(F.array_except(names, F.array(*map(F.lit, parts)))) > 0
    misfit = F.when(names.isNull(), OF_ANOTHER_TYPE).when(further, HAS_MORE).otherwise(WHOLE)
    texts = parsed(text, f"struct<{', '.join(f'`{name}`: string' for name in parts)}>", kind)

    def of_read(read: Column) -> Column:
        value = F.struct(*(read[name][VALUE].alias(name) for name in parts))
        misfits = F.greatest(misfit, *(read[name][MISFIT] for name in parts))
        return result(F.when(names.isNotNull(), value), F.when(text.isNull(), WHOLE).otherwise(misfits))

    def of_fields(fields: Column) -> Column:
        return bound(F.struct(*(read_as(fields[name], part).alias(name) for name, part in parts.items())), of_read)

    return bound(texts, of_fields)


def _collection(text: Column, value: Column, read: Column) -> Column:
    """Return the result for an array or a map with these parts, which are null if the text has another kind."""
    greatest = F.coalesce(F.array_max(F.transform(read, lambda each: each[MISFIT])), F.lit(WHOLE))
    misfit = F.when(text.isNull(), WHOLE).when(read.isNull(), OF_ANOTHER_TYPE).otherwise(greatest)
    return result(value, misfit)


def result(value: Column, misfit: Column) -> Column:
    """Return a value and how it fits, as `read_as` does."""
    return F.struct(value.alias(VALUE), misfit.alias(MISFIT))


def parsed(text: Column, parts: str, kind: str) -> Column:
    """Return the parts of JSON text, as text; null if it is of another kind."""
    parsed = F.from_json(text, parts)
    if "decimal" not in kind:
        return parsed
    # As for a column: `from_json` reads a fraction as a double, a variant keeps 38 digits.
    exact = F.coalesce(F.try_variant_get(F.try_parse_json(text), "$", parts), parsed)
    return F.when(text.rlike("[.eE]"), exact).otherwise(parsed)


def bound(value: Column, use: Callable[[Column], Column]) -> Column:
    """Return `use` of a value that is computed once, however often `use` needs it."""
    return F.transform(F.array(value), use)[0]
