"""The functions whose value depends on the order in which Spark reads the rows, which is another one in each run."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from millrace.sql.query.names import function_name, short
from millrace.sql.refusal import Refusal

_ANY_VALUE = (exp.AnyValue, exp.First, exp.FirstValue, exp.Last, exp.LastValue, exp.NthValue)
_LISTS = (exp.ArrayAgg, exp.ArrayUniqueAgg, exp.GroupConcat)
_ORDERLESS = ("array_max", "array_min", "array_size", "array_sort", "cardinality", "size", "sort_array")


def unordered(tree: exp.Expr) -> Iterator[Refusal]:
    """Yield the functions of an expression, or a query, that may have another value in each run, with the way out.

    An order that leaves ties is found only where it is the only value of `max_by` and `min_by`: which columns are
    different in each row is not known.

    >>> import sqlglot
    >>> texts = ("mode(a)", "mode(a, true)", "max_by(a, b)", "max_by(a, struct(b, id))", "sort_array(collect_set(a))")
    >>> [[each.message for each in unordered(sqlglot.parse_one(text, dialect="spark"))] for text in texts]
    [['MODE(a) may be another one of the most frequent values in each run'], [], \
['MAX_BY(a, b) may be the value of another row in each run, where b is the same'], [], []]
    """
    for node in tree.walk():
        if isinstance(node, _ANY_VALUE) and not _is_ordered(node):
            fix = "write min, max or max_by, or order the rows in a window"
            yield Refusal(f"{short(node)} may be the value of another row in each run", fix)
        elif isinstance(node, exp.Mode) and not (node.args.get("deterministic") or _is_ordered(node)):
            fix = f"write mode({short(node.this)}, true), which always takes the same one"
            yield Refusal(f"{short(node)} may be another one of the most frequent values in each run", fix)
        elif isinstance(node, exp.ArgMax | exp.ArgMin) and not _breaks_ties(node):
            value, order = short(node.this), short(node.expression)
            message = f"{short(node)} may be the value of another row in each run, where {order} is the same"
            fix = f"order by struct({order}, {value}), or by struct({order}, <a column that is different in each row>)"
            yield Refusal(message, fix)
        elif isinstance(node, _LISTS) and not _is_ordered(node) and function_name(_around(node)) not in _ORDERLESS:
            fix = (
                "write WITHIN GROUP (ORDER BY ...)" if isinstance(node, exp.GroupConcat) else "wrap it in sort_array()"
            )
            yield Refusal(f"{short(node)} is in another order in each run", fix)


def is_same_in_any_order(node: exp.Expr) -> bool:
    """Whether a function that may depend on the order of the rows has, as it is written, one value in any order.

    >>> import sqlglot
    >>> texts = ("mode(a, true)", "mode(a)", "max_by(a, struct(b, a))", "max_by(a, struct(b, id))", "collect_list(a)")
    >>> [is_same_in_any_order(sqlglot.parse_one(text, dialect="spark")) for text in texts]
    [True, False, True, False, False]
    """
    if isinstance(node, exp.Mode):
        return bool(node.args.get("deterministic") or _is_ordered(node))
    if isinstance(node, exp.ArgMax | exp.ArgMin):
        order = node.expression.unnest()
        parts = [part.expression for part in order.expressions] if isinstance(order, exp.Struct) else [order]
        return node.this in parts
    return isinstance(node, exp.ArrayAgg | exp.ArrayUniqueAgg) and function_name(_around(node)) in _ORDERLESS


def _is_ordered(node: exp.Expr) -> bool:
    """Whether a window, or WITHIN GROUP, says in which order a function sees the rows."""
    around = _around(node)
    if isinstance(around, exp.WithinGroup) or node.find(exp.Order):
        return True
    return isinstance(around, exp.Window) and bool(around.args.get("order") or around.args.get("alias"))


def _breaks_ties(node: exp.Expr) -> bool:
    """Whether `max_by` or `min_by` has an order of several columns, or the value itself."""
    order = node.expression.unnest()
    return order == node.this or (isinstance(order, exp.Struct) and len(order.expressions) > 1)


def _around(node: exp.Expr) -> exp.Expr:
    around = node.parent
    while isinstance(around, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        around = around.parent
    return around or node
