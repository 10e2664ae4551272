"""From which columns of its sources each column of a query comes, and which of them decide about its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, build_scope

from millrace.sql.expression import Use, has_star, use_of
from millrace.sql.query.select_query import query_of

Place = tuple[str, str, str]
"""Alias of a source, its column, and what happens to it in the words of OpenLineage, such as `AGGREGATION`."""

_CLAUSES = {"where": "FILTER", "having": "FILTER", "qualify": "FILTER", "group": "GROUP_BY", "joins": "JOIN"}
_DIRECT = [Use.IDENTITY, Use.TRANSFORMATION, Use.AGGREGATION]


def places_of_columns(query: str, columns: Mapping[str, tuple[str, ...]]) -> dict[str, list[Place]]:
    """Return column of the query -> the columns of sources that it comes from; nothing if sqlglot cannot say it.

    Args:
        query: the query.
        columns: alias -> the columns of the source.

    >>> places = places_of_columns("SELECT sum(x) AS n FROM (SELECT a + b AS x FROM f)", {"f": ("a", "b")})
    >>> [(alias, name, str(use)) for alias, name, use in places["n"]]
    [('f', 'a', 'AGGREGATION'), ('f', 'b', 'AGGREGATION')]
    """
    scope = scope_of(query, columns)
    names = query_of(query).columns
    return {name: list(dict.fromkeys(_of_output(scope, at))) for at, name in enumerate(names)} if scope else {}


def places_of_results(query: str, columns: Mapping[str, tuple[str, ...]]) -> list[list[Place]] | None:
    """Return for each column of the result, also of `*`, the columns of sources that it comes from.

    None stands for a query of which sqlglot cannot say it, or that reads all columns in one value.

    >>> places = places_of_results("SELECT *, a + b FROM f", {"f": ("a", "b")})
    >>> [[name for _, name, _ in of_column] for of_column in places or ()]
    [['a'], ['b'], ['a', 'b']]
    >>> places_of_results("SELECT to_json(struct(*)) FROM f", {"f": ("a", "b")})
    """
    scope = scope_of(query, columns)
    if scope is None or not isinstance(scope.expression, exp.Query) or has_star(scope.expression):
        return None
    return [list(dict.fromkeys(_of_output(scope, at))) for at in range(len(scope.expression.named_selects))]


def places_of_rows(query: str, columns: Mapping[str, tuple[str, ...]]) -> list[Place]:
    """Return the columns of sources by which the query joins, filters and groups."""
    root = scope_of(query, columns)
    found: dict[Place, None] = {}
    for scope in root.traverse() if root else ():
        for clause, use in _CLAUSES.items():
            part = scope.expression.args.get(clause)
            for node in part if isinstance(part, list) else [part] if part else []:
                places = (place for column in _columns_in(node) for place in _of_column(scope, column))
                found |= dict.fromkeys((alias, name, use) for alias, name, _ in places)
    return list(found)


def scope_of(query: str, columns: Mapping[str, tuple[str, ...]]) -> Scope | None:
    """Return the scopes of a query, whose columns are all qualified; None if sqlglot cannot say it.

    Args:
        query: the query.
        columns: alias -> the columns of the source.
    """
    tree = query_of(query).tree
    if tree is None:
        return None
    schema: dict[str, object] = {alias: dict.fromkeys(names, "string") for alias, names in columns.items()}
    try:
        whole = qualify(
            tree.copy(), dialect="spark", schema=schema, validate_qualify_columns=False, quote_identifiers=False
        )
    except SqlglotError:
        return None
    return build_scope(whole)


def _of_output(scope: Scope, at: int) -> Iterator[Place]:
    """Yield the places of the column at a position of a scope's result."""
    for branch in scope.set_operation_scopes:
        yield from _of_output(branch, at)
    if not scope.set_operation_scopes and isinstance(scope.expression, exp.Query):
        selects = scope.expression.selects
        for column in _columns_in(selects[at]) if at < len(selects) else ():
            use = use_of(column)
            for alias, name, before in _of_column(scope, column):
                yield alias, name, _together(use, before)


def _of_column(scope: Scope, column: exp.Column) -> Iterator[Place]:
    source = scope.sources.get(column.table)
    if isinstance(source, exp.Table):
        yield source.name, column.name, Use.IDENTITY
    elif isinstance(source, Scope) and isinstance(source.expression, exp.Query):
        names = source.outer_columns or source.expression.named_selects
        if column.name in names:
            yield from _of_output(source, names.index(column.name))


def _columns_in(node: exp.Expr) -> list[exp.Column]:
    return list(node.find_all(exp.Column, bfs=False))


def _together(use: str, before: str) -> str:
    """Return what happens in two steps: the one that decides most, or changes most."""
    if use not in _DIRECT or before not in _DIRECT:
        return use if use not in _DIRECT else before
    return max(use, before, key=[str(each) for each in _DIRECT].index)
