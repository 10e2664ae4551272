"""Avro schemas, as far as they say which columns a file has."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

Schema = dict[str, Any]
"""An Avro schema of records, as JSON."""

_NESTED = ("record", "enum", "fixed", "array", "map")
_SAYS_NOTHING_OF_VALUES = ("doc", "aliases", "default", "namespace", "order")


class AvroField(NamedTuple):
    """A field of a file's records.

    Attributes:
        name: its name.
        kind: its type as the schema has it, with every named type written out.
    """

    name: str
    kind: Any


def fields_of(schema: Any) -> tuple[AvroField, ...]:
    """The fields of the records of a schema.

    Raises:
        ValueError: its values are no records, or have a type that no column can have.
    """
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ValueError("its values are no records, so they have no columns; have records delivered")
    try:
        fields = tuple(AvroField(**field) for field in _written_out(schema, {}, ())["fields"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"its schema is no Avro schema ({error!r}); have it delivered again") from error
    names = [field.name.lower() for field in fields]
    if twice := [field.name for field in fields if names.count(field.name.lower()) > 1]:
        raise ValueError(f"its columns {', '.join(twice)} differ by nothing but case, and Spark takes them for one")
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
    """The type of a column for values of an Avro type; text where a bronze column has nothing better.

    >>> [column_type(kind) for kind in ("long", ["null", "int"], {"type": "array", "items": "int"})]
    ['bigint', 'int', 'string']
    >>> column_type({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2})
    'decimal(9,2)'
    """
    if isinstance(kind, list):
        others = [one for one in kind if one != "null"]
        return column_type(others[0]) if len(others) == 1 else "string"
    if isinstance(kind, str):
        return _TYPES.get(kind, "string")
    logical = kind.get("logicalType")
    if logical == "decimal":
        return f"decimal({kind['precision']},{kind.get('scale', 0)})"
    return _LOGICAL_TYPES.get(logical) or column_type(kind["type"])


def stored_form(schema: Schema) -> Schema:
    """The schema of the values as they are stored: a date is a number there, which may lie beyond those of Python.

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
        return [_without_logical_types(one) for one in kind]
    if isinstance(kind, dict):
        return {key: _without_logical_types(part) for key, part in kind.items() if key != "logicalType"}
    return kind


def _written_out(kind: Any, known: dict[str, Any], inside: tuple[str, ...]) -> Any:
    """A type with the types that it names in their place, without the words that say nothing of values.

    Args:
        kind: the type.
        known: the named types that came before it; those within it are added.
        inside: the named types that it is a part of.

    Raises:
        ValueError: it holds itself.
    """
    if isinstance(kind, list):
        return [_written_out(one, known, inside) for one in kind]
    if isinstance(kind, str):
        return _named(kind, known, inside)
    name = _short(str(kind.get("name", "")))
    deeper = (*inside, name)
    stated = {key: value for key, value in kind.items() if key not in _SAYS_NOTHING_OF_VALUES}
    for key in ("type", "items", "values"):
        if key in stated and stated[key] not in _NESTED:
            stated[key] = _written_out(stated[key], known, deeper)
    if "fields" in stated:
        of_fields = ((field["name"], field["type"]) for field in stated["fields"])
        stated["fields"] = [{"name": name, "kind": _written_out(part, known, deeper)} for name, part in of_fields]
    if name:
        known[name] = stated
    return stated


def _named(kind: str, known: dict[str, Any], inside: tuple[str, ...]) -> Any:
    name = _short(kind)
    if name in inside:
        raise ValueError(f"its type {name} holds itself, which no column can; have the source deliver it flat")
    return known.get(name, kind)


def _short(name: str) -> str:
    return name.rpartition(".")[2]
