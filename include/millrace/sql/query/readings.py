"""A query as sqlglot has read it, written out again: its tree says what it does only if Spark sees the same query.

sqlglot reads some of Spark SQL as something else, without an error: `-1::string` as the negative of a text, the quote
in `'O\'\'Hare'` as the end of a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import Token, TokenType, exp

from millrace.sql.query.parentheses import with_parentheses, without_parentheses
from millrace.sql.spark_text import parse_spark, tokens_of

_SUFFIXES = {
    exp.DType.TINYINT: "Y", exp.DType.SMALLINT: "S", exp.DType.BIGINT: "L", exp.DType.FLOAT: "F",
    exp.DType.DOUBLE: "D",
}  # fmt: skip
"""Type -> how a literal of it ends. sqlglot reads it as a cast, which has the same value; but not that of a decimal."""
_TYPED = (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ, exp.DType.TIMESTAMPTZ)


@dataclass(frozen=True)
class Reading:
    """A part of a query: one named subquery of WITH, or what follows these.

    Attributes:
        name: the name of the subquery; empty for what follows.
        columns: the names that WITH gives to its columns, if it does.
        written: its text.
        read: the same as sqlglot has read it, in each of the ways that are one tree for sqlglot and several for Spark:
            `CAST('...' AS DATE)` and `DATE'...'`, CROSS JOIN and a comma, SECOND and second, `date_sub(day, 2)` and
            `date_add(day, 2 * -1)`.
    """

    name: str
    columns: tuple[str, ...]
    written: str
    read: tuple[str, ...]


def readings_of(text: str, name: str = "", columns: tuple[str, ...] = ()) -> Iterator[Reading]:
    """Yield the parts of a query that Spark can parse, each after those that it reads.

    Spark numbers the named subqueries anew each time it reads them, so that only their parts can be compared.

    >>> for part in readings_of("WITH x (d) AS (SELECT day FROM f) SELECT -1::string AS k FROM x"):
    ...     print(part.name, part.columns, part.written, "|", part.read[0])
    x ('d',) SELECT day FROM f | SELECT day FROM f
     () SELECT -1::string AS k FROM x | SELECT -CAST(1 AS STRING) AS k FROM x
    """
    tokens = tokens_of(text)
    if tokens and tokens[0].token_type is TokenType.WITH:
        at = 0
        while at == 0 or tokens[at].token_type is TokenType.COMMA:
            own, at = tokens[at + 1].text, at + 2
            named: tuple[str, ...] = ()
            if tokens[at].token_type is TokenType.L_PAREN:
                end = _closing(tokens, at)
                named = tuple(token.text for token in tokens[at + 1 : end : 2])
                at = end + 1
            at += tokens[at].token_type is TokenType.ALIAS
            end = _closing(tokens, at)
            yield from readings_of(text[tokens[at].end + 1 : tokens[end].start], own, named)
            at = end + 1
        text = text[tokens[at].start :]
    tree = parse_spark(text)[0]
    if tree is not None:
        trees = [tree, tree.transform(_without_cross)]
        trees += [each.transform(_with_literal) for each in trees]
        trees += [each.transform(_with_small_unit) for each in trees]
        trees += [each.transform(_with_date_sub) for each in trees]
        read = (with_parentheses(without_parentheses(each)).sql(dialect="spark") for each in trees)
        yield Reading(name, columns, text, tuple(dict.fromkeys(read)))


def _closing(tokens: list[Token], at: int) -> int:
    """Return the place of the parenthesis that closes the one at a place."""
    depth = 0
    for place in range(at, len(tokens)):
        kind = tokens[place].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if depth == 0:
            break
    return place


def _without_cross(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Join) and node.kind == "CROSS":
        node.set("kind", "INNER")
    return node


def _with_small_unit(node: exp.Expr) -> exp.Expr:
    if isinstance(unit := node.args.get("unit"), exp.Var):
        node.set("unit", exp.var(unit.name.lower()))
    return node


def _with_date_sub(node: exp.Expr) -> exp.Expr:
    days = node.expression if isinstance(node, exp.TsOrDsAdd) else None
    if isinstance(days, exp.Mul) and days.expression == exp.Literal.number(-1):
        return exp.Anonymous(this="DATE_SUB", expressions=[node.this, days.this.unnest()])
    return node


def _with_literal(node: exp.Expr) -> exp.Expr:
    if not (isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal)):
        return node
    if node.this.is_string:
        is_typed = node.to.this in _TYPED
        return exp.var(f"{node.to.sql('spark')}{node.this.sql('spark')}") if is_typed else node
    suffix = _SUFFIXES.get(node.to.this)
    return exp.var(f"{node.this.name}{suffix}") if suffix else node
