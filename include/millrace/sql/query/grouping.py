"""Whether the windows and groups of a SELECT keep the rows of different values apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from sqlglot import exp

from millrace.sql.expression import is_aggregate
from millrace.sql.query.names import Names, UntraceableError, has_hidden_columns, nodes_of, short
from millrace.sql.query.reach import reach_of_window

_SUBTOTALS = ("grouping_sets", "cube", "rollup", "totals")


def reach_of_windows(select: exp.Select, value: exp.Expr, names: Names, lookback: timedelta) -> timedelta:
    """Return how far before a value the rows are that the windows of a SELECT see; nothing if they see only its own.

    Raises:
        UntraceableError: a window sees rows of other values, and there is no lookback; or it sees later ones.
    """
    reach = timedelta()
    named = {window.name: window for window in select.args.get("windows") or ()}
    for window in nodes_of(select):
        if not isinstance(window, exp.Window) or window in named.values():
            continue
        stated = named.get(window.alias) if window.alias else window
        if stated is None or (stated is not window and stated.alias):
            raise UntraceableError(f"the window {short(window)} is not traced")
        if is_determined_by(value, _resolved(stated.args.get("partition_by") or (), select, names)):
            continue
        if not lookback:
            raise UntraceableError(f"the window {short(window)} is not partitioned by {short(value)}")
        if stated is not window:
            raise UntraceableError(f"the window {short(window)} is not traced: write its order where it is used")
        own = reach_of_window(window, lambda key: value in _resolved([key], select, names), short(value))
        reach = max(reach, own)
    return reach


def require_grouped_by(select: exp.Select, value: exp.Expr, names: Names) -> None:
    """Require that the rows of each group of a SELECT have the same value; a SELECT without groups may.

    Raises:
        UntraceableError: they may not.
    """
    group = select.args.get("group")
    aggregate = next(_aggregates(select), None)
    if group is None:
        if aggregate is not None or select.args.get("having"):
            raise UntraceableError(f"{short(aggregate or select)} aggregates all rows")
        return
    parts = group.find_all(exp.Rollup, exp.Cube, exp.GroupingSets)
    if any(group.args.get(key) for key in _SUBTOTALS) or any(parts):
        raise UntraceableError(f"{short(group)} has subtotals over several groups")
    keys = group.expressions
    if group.args.get("all"):
        keys = [each.unalias() for each in select.expressions if not any(map(is_aggregate, each.walk()))]
    stated = [_at_number(select, int(key.name)) if key.is_int else key for key in keys]
    if not is_determined_by(value, _resolved(stated, select, names)):
        raise UntraceableError(f"{short(group)} does not contain {short(value)}")


def before_pivots(item: exp.Expr, value: exp.Expr, names: Names) -> exp.Expr:
    """Return a table of FROM without its PIVOT or UNPIVOT, which keeps rows of different values of a column apart.

    PIVOT groups by the columns that it does not name. UNPIVOT makes rows of one row, and keeps these columns.

    Raises:
        UntraceableError: the value is of another column.
    """
    inner = item.copy()
    inner.set("pivots", None)
    columns = names.columns_of(inner) or ()
    for pivot in item.args["pivots"]:
        named = {identifier.name for identifier in pivot.find_all(exp.Identifier)}
        for column in value.find_all(exp.Column):
            if column.name not in columns or column.name in named:
                raise UntraceableError(f"{column.name} is not known to be a column that {short(pivot)} keeps as it is")
    return inner


def is_determined_by(value: exp.Expr, keys: list[exp.Expr]) -> bool:
    """Whether a value is the same in all rows in which the keys are the same."""
    if value in keys:
        return True
    return not isinstance(value, exp.Column) and all(is_determined_by(part, keys) for part in value.iter_expressions())


def _at_number(select: exp.Select, number: int) -> exp.Expr:
    if has_hidden_columns(select.expressions) or not 1 <= number <= len(select.expressions):
        raise UntraceableError(f"GROUP BY {number} is not traced: write the expression")
    expression: exp.Expr = select.expressions[number - 1].unalias()
    return expression


def _resolved(keys: Iterable[exp.Expr], select: exp.Select, names: Names) -> list[exp.Expr]:
    resolved = []
    for key in keys:
        try:
            resolved.append(names.resolve(select, key))
        except UntraceableError:
            continue  # rows are also split by this key, and what it is computed from does not matter
    return resolved


def _aggregates(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the aggregates over the rows of a group; those over a window are none."""
    for node in filter(is_aggregate, nodes_of(select)):
        function = node
        while isinstance(around := function.parent, exp.IgnoreNulls | exp.RespectNulls | exp.Filter | exp.WithinGroup):
            function = around
        if not isinstance(around, exp.Window) or function.arg_key != "this":
            yield node
