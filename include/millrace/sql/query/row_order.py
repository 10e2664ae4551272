"""Which columns of a query may depend on the order in which Spark reads the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from millrace.sql.query.lineage import scope_of
from millrace.sql.query_functions import DEPENDS_ON_ORDER, ORDERED_WITH_TIES
from millrace.sql.spark_text import spark_name
from millrace.sql.unordered import is_same_in_any_order

_DECIDE_ON_ROWS = ("where", "having", "qualify", "group", "joins")


def columns_by_order(query: str, columns: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return column of the result -> why its value may depend on the order in which Spark reads the rows.

    If such a value decides which rows there are, these are all columns.

    Args:
        query: the query, without refusals.
        columns: alias -> the columns of the source.

    >>> columns_by_order("SELECT day, m FROM (SELECT day, mode(x) AS m FROM f GROUP BY day)", {"f": ("day", "x")})
    {'m': 'mode may depend on the order of the rows'}
    >>> list(columns_by_order("SELECT day FROM f GROUP BY day HAVING first(x) > 0", {"f": ("day", "x")}))
    ['day']
    """
    root = scope_of(query, columns)
    if root is None or not isinstance(root.expression, exp.Query):
        return {}
    names = root.expression.named_selects
    decides = next((each for scope in root.traverse() for each in _of_rows(scope)), "")
    found = {name: decides or next(_of_output(root, at), "") for at, name in enumerate(names)}
    why = "decides which rows there are, and may depend on" if decides else "may depend on"
    return {name: f"{function} {why} the order of the rows" for name, function in found.items() if function}


def functions_by_order(part: exp.Expr) -> Iterator[str]:
    """Yield the functions in a part of a query, or in an expression, that may depend on the order of the rows.

    >>> import sqlglot
    >>> list(functions_by_order(sqlglot.parse_one("size(collect_set(a)) + max_by(a, struct(b, id))", dialect="spark")))
    ['max_by']
    """
    for node in part.find_all(exp.Func, bfs=False):
        if (name := spark_name(node)) in DEPENDS_ON_ORDER and not is_same_in_any_order(node):
            yield name


def functions_with_ties(query: exp.Expr) -> list[str]:
    """Return the functions of windows in a query whose values for rows that tie depend on the order of the rows."""
    return sorted(ORDERED_WITH_TIES.intersection(map(spark_name, query.find_all(exp.Func))))


def _of_output(scope: Scope, at: int) -> Iterator[str]:
    """Yield the functions on which the column at a position of a scope's result depends."""
    for branch in scope.set_operation_scopes:
        yield from _of_output(branch, at)
    if not scope.set_operation_scopes and isinstance(scope.expression, exp.Query):
        selects = scope.expression.selects
        if at < len(selects):
            yield from _of_part(scope, selects[at])


def _of_part(scope: Scope, part: exp.Expr) -> Iterator[str]:
    yield from functions_by_order(part)
    for column in part.find_all(exp.Column, bfs=False):
        source = scope.sources.get(column.table)
        if isinstance(source, Scope) and isinstance(source.expression, exp.Query):
            names = source.outer_columns or source.expression.named_selects
            if column.name in names:
                yield from _of_output(source, names.index(column.name))


def _of_rows(scope: Scope) -> Iterator[str]:
    """Yield the functions by which a scope chooses, groups or joins rows."""
    query = scope.expression
    for clause in _DECIDE_ON_ROWS:
        part = query.args.get(clause)
        for each in part if isinstance(part, list) else [part] if part else []:
            yield from _of_part(scope, each)
    if not isinstance(query, exp.Query):
        return
    order = query.args["order"] if query.args.get("limit") and query.args.get("order") else None
    if order:
        yield from _of_part(scope, order)
    by_name = {column.name for column in order.find_all(exp.Column)} if order else set()
    for at, name in enumerate(query.named_selects):
        if query.args.get("distinct") or name in by_name:
            yield from _of_output(scope, at)
