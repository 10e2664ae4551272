"""The columns of Avro schemas."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from include.contracts.spec.nested_type import NestedType, column_type_of

Schema = dict[str, Any]
"""An Avro schema of records, as JSON."""

_NESTED = ("record", "enum", "fixed", "array", "map")
_IRRELEVANT_KEYS = ("doc", "aliases", "default", "namespace", "order")


class AvroField(NamedTuple):
    """A field of a file's records: its name, and its type with every named type replaced by its definition."""

    name: str
    kind: Any


def fields_of(schema: Any) -> tuple[AvroField, ...]:
    """Return the fields of the records of a schema.

    Raises:
        ValueError: its values are no records, or have a type that no column can have.
    """
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ValueError("its values are no records, so they have no columns; have records delivered")
    try:
        fields = tuple(AvroField(**field) for field in _resolve(schema, {}, ())["fields"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"its schema is no Avro schema ({error!r}); have it delivered again") from error
    names = [field.name.lower() for field in fields]
    if repeated := [field.name for field in fields if names.count(field.name.lower()) > 1]:
        raise ValueError(f"its columns {', '.join(repeated)} differ by nothing but case, and Spark takes them for one")
    return fields


_TYPES = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "fixed": "binary",
}
_LOGICAL_TYPES = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp",
    "local-timestamp-micros": "timestamp",
}


def column_type(kind: Any) -> str:
    """Return the type of a bronze column for values of an Avro type; `string` if no other type fits.

    >>> [column_type(kind) for kind in ("long", ["null", "int"], {"type": "array", "items": "int"})]
    ['bigint', 'int', 'array<int>']
    >>> column_type({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2})
    'decimal(9,2)'
    """
    if isinstance(kind, list):
        others = [part for part in kind if part != "null"]
        return column_type(others[0]) if len(others) == 1 else "string"
    if isinstance(kind, str):
        return _TYPES.get(kind, "string")
    logical = kind.get("logicalType")
    if logical == "decimal":
        return f"decimal({kind['precision']},{kind.get('scale', 0)})"
    if kind["type"] not in ("record", "array", "map"):
        return _LOGICAL_TYPES.get(logical) or column_type(kind["type"])
    if kind["type"] == "record":
        return column_type_of(
            NestedType("struct", {part["name"]: column_type(part["kind"]) for part in kind["fields"]})
        )
    part = "items" if kind["type"] == "array" else "values"
    return column_type_of(NestedType(kind["type"], {part: column_type(kind[part])}))


def stored_schema(schema: Schema) -> Schema:
    """Return the schema of the stored values: a date is stored as a number, which may exceed the dates of Python.

    Raises:
        ValueError: it is no schema.
    """
    try:
        parsed = fastavro.parse_schema(_without_logical_types(schema))
    except (SchemaParseException, UnknownType) as error:
        raise ValueError(f"its schema is no Avro schema ({error!r}); have it delivered again") from error
    return cast(Schema, parsed)


def _without_logical_types(kind: Any) -> Any:
    if isinstance(kind, list):
        return [_without_logical_types(part) for part in kind]
    if isinstance(kind, dict):
        return {key: _without_logical_types(part) for key, part in kind.items() if key != "logicalType"}
    return kind


def _resolve(kind: Any, known: dict[str, Any], inside: tuple[str, ...]) -> Any:
    """Return a type with the definitions of the types that it names, and without keys that do not affect values.

    `known` has the named types before it, and receives those within it; `inside` has the types that contain it.
    """
    if isinstance(kind, list):
        return [_resolve(part, known, inside) for part in kind]
    if isinstance(kind, str):
        name = _short_name(kind)
        if name in inside:
            raise ValueError(f"its type {name} holds itself, which no column can; have the source deliver it flat")
        return known.get(name, kind)
    name = _short_name(str(kind.get("name", "")))
    inside = (*inside, name)
    resolved = {key: value for key, value in kind.items() if key not in _IRRELEVANT_KEYS}
    for key in ("type", "items", "values"):
        if key in resolved and resolved[key] not in _NESTED:
            resolved[key] = _resolve(resolved[key], known, inside)
    if "fields" in resolved:
        fields = resolved["fields"]
        resolved["fields"] = [
            {"name": field["name"], "kind": _resolve(field["type"], known, inside)} for field in fields
        ]
    if name:
        known[name] = resolved
    return resolved


def _short_name(name: str) -> str:
    return name.rpartition(".")[2]
