"""The columns of Avro schemas."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple, cast

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from millrace.contracts.spec.column_types import TYPES
from millrace.contracts.spec.nested_type import NestedType, column_type_of

Schema = dict[str, Any]
"""An Avro schema of records, as JSON."""

_NAMED = ("record", "enum", "fixed")
_NESTED = (*_NAMED, "array", "map")
_IRRELEVANT_KEYS = ("doc", "aliases", "default", "namespace", "order")


HOLDS_ITSELF = "a type that contains this"
"""What stands for a named type within itself: Spark reads no file with one."""


class AvroField(NamedTuple):
    """A field of a file's records: its name, and its type with every named type replaced by its definition."""

    name: str
    kind: Any

    @property
    def is_refused(self) -> bool:
        """Whether a type in it contains itself, or has fields that differ only in case: Spark reads no such file."""
        return HOLDS_ITSELF in str(self.kind) or _has_like_names(self.kind)


def _has_like_names(kind: Any) -> bool:
    if isinstance(kind, list):
        return any(map(_has_like_names, kind))
    if not isinstance(kind, dict):
        return False
    fields = kind.get("fields", ())
    names = {field["name"].lower() for field in fields}
    parts = [field["kind"] for field in fields] + [kind.get(key) for key in ("type", "items", "values")]
    return len(names) < len(fields) or any(map(_has_like_names, parts))


def fields_of(schema: Any) -> tuple[AvroField, ...]:
    """Return the fields of the records of a schema.

    Raises:
        ValueError: its values are no records, or have a type that no column can have.
    """
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ValueError("its values are no records, so they have no columns; have records delivered")
    try:
        fields = tuple(AvroField(**field) for field in _resolve(schema, {}, (), "")["fields"])
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"its schema is no Avro schema ({error!r}); have it delivered again") from error
    counts = Counter(field.name.lower() for field in fields)
    if repeated := [field.name for field in fields if counts[field.name.lower()] > 1]:
        raise ValueError(f"its columns {', '.join(repeated)} differ by nothing but case, and Spark takes them for one")
    return fields


_TYPES = {of_avro: name for name, kind in TYPES.items() for of_avro in kind.avro}
_LOGICAL_TYPES = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp",
    "local-timestamp-micros": "timestamp",
    "timestamp-nanos": "timestamp",
    "local-timestamp-nanos": "timestamp",
    **dict.fromkeys(("time-millis", "time-micros", "uuid", "duration"), "string"),
}
_UNIONS = {frozenset({"int", "long"}): "bigint", frozenset({"float", "double"}): "double"}
"""Types of which a value has one -> the type that holds both."""
_MAX_DIGITS = 38


def column_type(kind: Any) -> str:
    """Return the type of a bronze column for values of an Avro type; `string` if no other type fits.

    >>> [column_type(kind) for kind in ("long", ["null", "int"], ["int", "long"], {"type": "array", "items": "int"})]
    ['bigint', 'int', 'bigint', 'array<int>']
    >>> [column_type({"type": "bytes", "logicalType": "decimal", "precision": n, "scale": 2}) for n in (9, 50, 1)]
    ['decimal(9,2)', 'string', 'binary']
    """
    if HOLDS_ITSELF in str(kind):
        return "string"
    if isinstance(kind, list):
        others = [part for part in kind if part != "null"]
        if len(others) == 1:
            return column_type(others[0])
        return _UNIONS.get(frozenset(map(str, others)), "string")
    if isinstance(kind, str):
        return _TYPES.get(kind, "string")
    logical = kind.get("logicalType")
    if logical == "decimal" and (digits := _digits_of(kind)):
        return "decimal({},{})".format(*digits) if digits[0] <= _MAX_DIGITS else "string"
    if kind["type"] not in ("record", "array", "map"):
        return _LOGICAL_TYPES.get(logical) or column_type(kind["type"])
    if kind["type"] == "record":
        return column_type_of(
            NestedType("struct", {part["name"]: column_type(part["kind"]) for part in kind["fields"]})
        )
    part = "items" if kind["type"] == "array" else "values"
    return column_type_of(NestedType(kind["type"], {part: column_type(kind[part])}))


def _digits_of(kind: Schema) -> tuple[int, int] | None:
    """Return the digits of a decimal, and those after its point; None if Avro's readers ignore that it is one."""
    precision, scale = kind.get("precision"), kind.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision or not precision:
        return None
    return precision, scale


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


def _resolve(kind: Any, known: dict[str, Any], inside: tuple[str, ...], namespace: str) -> Any:
    """Return a type with the definitions of the types that it names, and without keys that do not affect values.

    `known` has the named types before it by full name, and receives those within it; `inside` has the names of the
    types that contain it, and `namespace` is the one in which it stands.
    """
    if isinstance(kind, list):
        return [_resolve(part, known, inside, namespace) for part in kind]
    if isinstance(kind, str):
        full = _full_name(kind, namespace)
        # Java's Avro also finds a type without a namespace by its name.
        name = full if full in known or full in inside else kind
        if name in inside:
            return HOLDS_ITSELF
        return known.get(name, kind)
    name = ""
    if kind["type"] in _NAMED:
        name = _full_name(str(kind["name"]), str(kind.get("namespace", namespace) or ""))
        inside, namespace = (*inside, name), name.rpartition(".")[0]
    resolved = {key: value for key, value in kind.items() if key not in _IRRELEVANT_KEYS}
    for key in ("type", "items", "values"):
        if key in resolved and resolved[key] not in _NESTED:
            resolved[key] = _resolve(resolved[key], known, inside, namespace)
    if "fields" in resolved:
        fields = resolved["fields"]
        resolved["fields"] = [
            {"name": field["name"], "kind": _resolve(field["type"], known, inside, namespace)} for field in fields
        ]
    if name:
        known[name] = resolved
    return resolved


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"
