"""Fields of a struct, entries of a map: `a.b` as `a['b']`, which is the same for Spark and cannot be a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from sqlglot import exp
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

Node = TypeVar("Node", bound=exp.Expr)

_WRITTEN = "written"


def normalized(tree: Node) -> Node:
    """Return a query with quoted names in small letters; what may be a field keeps its letters, as keys of maps do.

    >>> from sqlglot import parse_one
    >>> normalized(parse_one("SELECT Day, f(A).B AS c FROM O", dialect="spark")).sql("spark")
    "SELECT `day`, F(`a`)['B'] AS `c` FROM `o`"
    """
    for name in tree.find_all(exp.Identifier):
        name.meta[_WRITTEN] = name.name
    whole = normalize_identifiers(tree, dialect="spark")
    for name in whole.find_all(exp.Identifier):
        name.set("quoted", True)
    for dot in reversed(list(whole.find_all(exp.Dot))):
        # `catalog.schema.function(...)` begins with names, and ends with none.
        if isinstance(dot.expression, exp.Identifier) and not isinstance(dot.this, exp.Identifier):
            dot.replace(field_of(dot.this, [dot.expression]))
    return whole


def as_written(node: Node) -> Node:
    """Return a copy of a part of a normalized query, with each name in its own letters."""
    copy = node.copy()
    for name in copy.find_all(exp.Identifier):
        name.set("this", name.meta.get(_WRITTEN, name.name))
    return copy


def field_of(value: exp.Expr, names: Iterable[exp.Expr]) -> exp.Expr:
    """Return the field of a value, or the field of its field."""
    for name in names:
        value = exp.Bracket(this=value, expressions=[exp.Literal.string(name.meta.get(_WRITTEN, name.name))])
    return value
