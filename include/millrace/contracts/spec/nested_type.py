"""The types of columns whose values have parts: structs, arrays and maps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from millrace.contracts.spec.column_types import TYPES

if TYPE_CHECKING:
    from sqlglot.expressions import DataType

NESTED = ("struct<", "array<", "map<")
"""The beginnings of nested types."""

MAX_DEPTH = 5
"""How many types deep a type may be: Spark Connect takes no deeper expression than that which reads one."""

_SCALARS = {kind.sqlglot or name.upper() for name, kind in TYPES.items() if kind.is_stored}
"""The names that sqlglot has for the types without parts."""

_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class NestedType:
    """A type whose values have parts.

    Attributes:
        kind: `struct`, `array` or `map`.
        parts: the types of the parts: by the names of a struct's fields; for `array` and `map` one, under the name
            `element` or `value`. The keys of a map are strings.
    """

    kind: str
    parts: Mapping[str, str] = field(hash=False)

    def __str__(self) -> str:
        if self.kind == "struct":
            return f"struct<{','.join(f'{name}:{kind}' for name, kind in self.parts.items())}>"
        ((_, part),) = self.parts.items()
        return f"map<string,{part}>" if self.kind == "map" else f"array<{part}>"


def is_nested(kind: str) -> bool:
    """Return whether the values of a type have parts."""
    return kind.lower().startswith(NESTED)


@lru_cache(maxsize=1000)
def nested_type(text: str) -> NestedType:
    """Return a nested type with its parts, written as Spark writes types.

    >>> nested_type("struct<city: STRING, tags: array<string>>").parts
    {'city': 'string', 'tags': 'array<string>'}
    >>> str(nested_type("map<string, decimal(10, 2)>"))
    'map<string,decimal(10,2)>'

    Raises:
        ValueError: it is no nested type, or one that no table can have.
    """
    # Imported here: sqlglot takes half a second to load, and few specs have nested types.
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = exp.DataType.build(text, dialect="spark")
    except SqlglotError as error:
        raise ValueError(
            f"{text!r} is no type: write struct<name: type, ...>, array<type> or map<string, type>"
        ) from error
    if _depth(tree) > MAX_DEPTH:
        raise ValueError(
            f"{text!r} is more than {MAX_DEPTH} types deep: read the parts within as string, which keeps JSON"
        )
    return _nested(tree, text)


def scalar_types(kind: str) -> frozenset[str]:
    """Return the types without parts in a type: the type itself, if it has no parts.

    >>> sorted(scalar_types("struct<id:int,at:array<timestamp>>"))
    ['int', 'timestamp']
    """
    if not is_nested(kind):
        return frozenset({kind})
    return frozenset().union(*map(scalar_types, nested_type(kind).parts.values()))


def type_at(kind: str, path: Iterable[str | int]) -> str:
    """Return the type of a part of a type: names of fields and keys of maps, numbers of elements; empty if it has none.

    >>> type_at("struct<items:array<struct<price:int>>>", ("items", 0, "price"))
    'int'
    """
    for step in path:
        nested = nested_type(kind) if is_nested(kind) else None
        if nested is None or isinstance(step, int) is not (nested.kind == "array"):
            return ""
        kind = nested.parts.get(str(step), "") if nested.kind == "struct" else next(iter(nested.parts.values()))
    return kind


def column_type_of(nested: NestedType) -> str:
    """Return a type with parts as the type of a column; `string` if a name, a part or the depth is not possible.

    >>> [column_type_of(NestedType("array", {"element": part})) for part in ("int", "binary", "struct<`a b`:int>")]
    ['array<int>', 'string', 'string']
    """
    if "binary" in nested.parts.values():
        return "string"
    try:
        return str(nested_type(str(nested)))
    except ValueError:
        return "string"


def _depth(tree: DataType) -> int:
    parts = (part.args.get("kind") or part for part in tree.expressions)
    is_type = _name(tree).lower() in ("struct", "array", "map")
    return 1 + max(map(_depth, parts), default=0) if is_type else 0


def _nested(tree: DataType, text: str) -> NestedType:
    kind, parts = _name(tree).lower(), tree.expressions
    if kind == "struct" and parts and all(part.name and part.args.get("kind") for part in parts):
        names = [part.name for part in parts]
        if odd := next((name for name in names if not _FIELD.fullmatch(name)), ""):
            raise ValueError(f"{odd!r} in {text!r} is no name within a type: read it into a column of its own")
        if len({name.lower() for name in names}) < len(names):
            raise ValueError(f"two names in {text!r} are the same, or differ in upper and lower case only")
        return NestedType("struct", {part.name: _text(part.args["kind"], text) for part in parts})
    if kind == "array" and len(parts) == 1:
        return NestedType("array", {"element": _text(parts[0], text)})
    if kind == "map" and len(parts) == 2:
        if _text(parts[0], text) != "string":
            raise ValueError(f"the keys of a map are strings: write map<string, ...>, not {text!r}")
        return NestedType("map", {"value": _text(parts[1], text)})
    raise ValueError(f"{text!r} is no type: write struct<name: type, ...>, array<type> or map<string, type>")


def _text(tree: DataType, text: str) -> str:
    """Return a type within another type, as Spark writes it."""
    name = _name(tree)
    if name.lower() in ("struct", "array", "map"):
        return str(_nested(tree, text))
    if name not in _SCALARS:  # sqlglot has Spark words for types that Spark does not have: TIMESTAMP for a TIME
        raise ValueError(f"{name.lower()} in {text!r} is no type that a column can have: read the part as string")
    return re.sub(r"\s", "", tree.sql("spark").lower())


def _name(tree: DataType) -> str:
    return str(getattr(tree.this, "value", tree.sql("spark")))  # of INTERVAL YEAR sqlglot makes another tree
