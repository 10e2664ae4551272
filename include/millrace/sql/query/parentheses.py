"""Expressions without parentheses, so that equal ones compare equal, and with them, so that they can be read again."""

from __future__ import annotations

from typing import TypeVar

from sqlglot import exp

Node = TypeVar("Node", bound=exp.Expr)

_OPERATORS = (exp.Binary, exp.Unary, exp.Between, exp.In)
_AROUND = (*_OPERATORS, exp.Bracket, exp.AtTimeZone, exp.Collate, exp.Interval)


def without_parentheses(node: Node) -> Node:
    """Return a copy without parentheses around its parts: the tree itself says what belongs together."""
    copy = node.copy()
    for paren in list(copy.find_all(exp.Paren)):
        if paren is not copy:
            paren.replace(paren.this)
    return copy


def with_parentheses(node: exp.Expr) -> exp.Expr:
    """Return a copy with parentheses around each operation within another one."""
    copy = node.copy()
    for part in reversed(list(copy.walk())):
        if isinstance(part, _OPERATORS) and isinstance(part.parent, _AROUND) and not isinstance(part, exp.Dot):
            wrapper = exp.Paren()
            part.replace(wrapper)
            wrapper.set("this", part)
    return copy


def outline(node: exp.Expr) -> list[str]:
    """Return the operations of an expression, and their columns, in an order that tells what belongs together.

    The names of functions are left out, because sqlglot writes some of them in another way.

    >>> from sqlglot import parse_one
    >>> outline(parse_one("a * (b + date(c))")) == outline(parse_one("a * (b + CAST(c AS DATE))"))
    True
    """
    parts = (part for part in node.dfs() if isinstance(part, (exp.Column, exp.Bracket, *_OPERATORS)))
    return [
        f"{type(part).__name__} {part.sql() if isinstance(part, exp.Column) else ''}"
        for part in parts
        if not isinstance(part, exp.Paren)
    ]
