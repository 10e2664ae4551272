"""From which columns of its sources each column of a query comes, and which of them decide about its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, build_scope

from millrace.sql.expression import Use, use_of
from millrace.sql.query.select_query import names_columns, query_of

Place = tuple[str, str, str]
"""Alias of a source, its column, and what happens to it in the words of OpenLineage, such as `AGGREGATION`."""

_CLAUSES = {"where": "FILTER", "having": "FILTER", "qualify": "FILTER", "group": "GROUP_BY", "joins": "JOIN"}
_UNNAMED = "_col_"
"""How sqlglot begins the name of a column for which the query has none."""

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


def places_of_results(
    query: str, columns: Mapping[str, tuple[str, ...]], results: Sequence[str]
) -> list[list[Place]] | None:
    """Return for each column of the result, also of `*`, the columns of sources that it comes from.

    None stands for a query of which sqlglot cannot say it, or that does not name what it reads.

    Args:
        query: the query.
        columns: alias -> the columns of the source.
        results: the columns of the result, as Spark names them; sqlglot may give `*` others, or another order.

    >>> places = places_of_results("SELECT *, a + b FROM f", {"f": ("a", "b")}, ["a", "b", "(a + b)"])
    >>> [[name for _, name, _ in of_column] for of_column in places or ()]
    [['a'], ['b'], ['a', 'b']]
    >>> places_of_results("SELECT to_json(struct(*)) FROM f", {"f": ("a", "b")}, ["x"])
    """
    scope = scope_of(query, columns)
    if scope is None or not isinstance(scope.expression, exp.Query):
        return None
    if not (names_columns(scope.expression) and _knows_every_place(scope)):
        return None
    names = scope.expression.named_selects
    are_same = (own.startswith(_UNNAMED) or own == name.lower() for own, name in zip(names, results, strict=False))
    if len(names) != len(results) or not all(are_same):
        return None
    return [list(dict.fromkeys(_of_output(scope, at))) for at in range(len(names))]


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


def names_every_place(query: str, columns: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether `places_of_columns` has all columns of sources from which a value comes, for a query over `columns`.

    It has not if sqlglot cannot say of which source a column is, of a WITH that reads its own rows, and of a function
    that makes several columns, as in `explode(m) AS (k, v)`.

    >>> names_every_place("SELECT a FROM f", {"f": ("a",)}), names_every_place("SELECT f.* FROM f", {"f": ("a",)})
    (True, False)
    >>> names_every_place("SELECT b FROM f CROSS JOIN g", {"f": ("a",), "g": ("a",)})
    False
    """
    root = scope_of(query, columns)
    return root is not None and query_of(query).names_its_columns and _knows_every_place(root)


def _knows_every_place(root: Scope) -> bool:
    if any(clause.args.get("recursive") for clause in root.expression.find_all(exp.With)):
        return False
    return all(
        not isinstance(select, exp.Aliases) and all(_is_known(scope, column) for column in _columns_in(select))
        for scope in root.traverse()
        for select in (scope.expression.selects if isinstance(scope.expression, exp.Query) else [scope.expression])
    )


def _is_known(scope: Scope, column: exp.Column) -> bool:
    source = _source_of(scope, column)
    if isinstance(source, Scope) and isinstance(source.expression, exp.Query):
        return column.name in (source.outer_columns or source.expression.named_selects)
    return source is not None


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
        return build_scope(whole)
    except (SqlglotError, AssertionError):  # it asserts that no star is left where GROUP BY counts columns
        return None


def _of_output(scope: Scope, at: int) -> Iterator[Place]:
    """Yield the places of the column at a position of a scope's result."""
    for branch in scope.set_operation_scopes:
        yield from _of_output(branch, at)
    if not scope.set_operation_scopes and isinstance(scope.expression, exp.Query):
        for column in _columns_of_output(scope.expression, at):
            use = use_of(column)
            for alias, name, before in _of_column(scope, column):
                yield alias, name, _together(use, before)


def _of_column(scope: Scope, column: exp.Column) -> Iterator[Place]:
    source = _source_of(scope, column)
    if isinstance(source, exp.Table) and not isinstance(source.this, exp.Identifier):
        yield from _of_arguments(scope, source)
    elif isinstance(source, exp.Table):
        if source.name not in scope.cte_sources:  # else it is a part of WITH that PIVOT turns
            yield source.name, column.name, Use.IDENTITY
    elif isinstance(source, Scope) and isinstance(source.expression, exp.Query):
        names = source.outer_columns or source.expression.named_selects
        if column.name in names:
            yield from _of_output(source, names.index(column.name))
    elif isinstance(source, Scope):  # LATERAL
        yield from _of_arguments(source, source.expression)


def _of_arguments(scope: Scope, rows: exp.Expr) -> Iterator[Place]:
    """Yield the places of the columns from which a function, such as explode(), makes rows."""
    for column in _columns_in(rows):
        yield from ((alias, name, Use.TRANSFORMATION) for alias, name, _ in _of_column(scope, column))


def _source_of(scope: Scope, column: exp.Column) -> exp.Table | Scope | None:
    """Return the source of a column of a scope, or of a subquery in it, which may read sources of outer scopes."""
    owner = next((inner for inner in scope.traverse() if id(column) in inner.column_index), scope)
    while owner.parent and column.table not in owner.sources:
        owner = owner.parent
    return owner.sources.get(column.table)


def _columns_of_output(query: exp.Query, at: int) -> Iterator[exp.Column]:
    """Yield the columns in the expression at a position of a SELECT, and those of the windows that it names."""
    for node in query.selects[at : at + 1]:
        yield from _columns_in(node)
        for window in query.args.get("windows") or () if node.find(exp.Window) else ():
            yield from _columns_in(window)


def _columns_in(node: exp.Expr) -> list[exp.Column]:
    return list(node.find_all(exp.Column, bfs=False))


def _together(use: str, before: str) -> str:
    """Return what happens in two steps: the one that decides most, or changes most."""
    if use not in _DIRECT or before not in _DIRECT:
        return use if use not in _DIRECT else before
    return max(use, before, key=[str(each) for each in _DIRECT].index)
