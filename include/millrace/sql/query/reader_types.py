"""The types of a query's columns by which a table needs a reader of Delta's later protocol, as far as the text says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope

from millrace.sql.clock_words import values_of
from millrace.sql.query.lineage import scope_of
from millrace.sql.query.names import function_name
from millrace.sql.query.select_query import query_of

TIMESTAMP_NTZ, VARIANT = "timestamp_ntz", "variant"
WAY_OUT = {
    TIMESTAMP_NTZ: "write cast(<value> AS timestamp)",
    VARIANT: "write to_json(<value>), or variant_get(<value>, '$.part', 'string') for a part",
}
"""Type that raises a table's reader version -> the way out."""

_TYPES = {exp.DType.TIMESTAMPNTZ: TIMESTAMP_NTZ, exp.DType.VARIANT: VARIANT}
_GIVE = {
    **dict.fromkeys(("convert_timezone", "localtimestamp", "make_timestamp_ntz", "to_timestamp_ntz"), TIMESTAMP_NTZ),
    "try_make_timestamp_ntz": TIMESTAMP_NTZ,
    **dict.fromkeys(("parse_json", "try_parse_json", "to_variant_object"), VARIANT),
}
"""Function -> the type of its value."""
_STATE_TYPES = {"from_json": 1, "from_csv": 1, "from_xml": 1, "variant_get": 2, "try_variant_get": 2}
"""Function -> which of its arguments states the type of its value."""
_TEXTS = (exp.Lower, exp.Upper, exp.Trim)
_HOLDING = (exp.Array, exp.ArrayAgg, exp.ArrayUniqueAgg, exp.PropertyEQ, exp.Struct, exp.VarMap)
"""What has its parts within its value."""
_MOVING = (exp.Add, exp.Sub, exp.TimestampAdd)

TypeOfColumn = Callable[[exp.Column], str]


def reader_type(node: exp.Expr | None, of_column: TypeOfColumn = lambda _: "") -> str:
    """Return the type in an expression's value by which it raises a table's reader version; empty if none is known.

    Args:
        node: the expression.
        of_column: returns the same of a column.

    >>> import sqlglot
    >>> texts = ("struct(max(to_timestamp_ntz(x)) AS at)", "x::array<variant>", "coalesce(x::timestamp_ntz, y)")
    >>> [reader_type(sqlglot.parse_one(text, dialect="spark")) for text in texts]
    ['timestamp_ntz', 'variant', '']
    """
    own = partial(reader_type, of_column=of_column)
    match node:
        case None:
            return ""
        case exp.Column():
            return of_column(node)
        case exp.Cast():
            return _in_type(node.to)
        case exp.Alias():
            return own(node.this)
        case _ if isinstance(node, _HOLDING):
            return next(filter(None, map(own, node.iter_expressions())), "")
        case _ if isinstance(node, _MOVING):
            is_moved = isinstance(node, exp.TimestampAdd) or isinstance(node.expression, exp.Interval)
            return own(node.this) if is_moved else ""
    name = function_name(node)
    if name in _STATE_TYPES:
        return _in_text([*node.iter_expressions()][_STATE_TYPES[name] :])
    # Beside a timestamp, one without a zone becomes one, too.
    values = (
        [] if isinstance(node, _TEXTS) else [own(each) for each in values_of(node) if not isinstance(each, exp.Null)]
    )
    return _GIVE.get(name) or (values[0] if len(set(values)) == 1 else "")


def reader_types(query: str, columns: Mapping[str, tuple[str, ...] | None]) -> dict[str, str]:
    """Return column of a query -> the type by which it raises the table's reader version; only those that are known.

    Args:
        query: the query.
        columns: alias -> the columns of the source; None if they are not known.
    """
    scope = scope_of(query, {alias: names for alias, names in columns.items() if names is not None})
    found = {name: _of_output(scope, at) for at, name in enumerate(query_of(query).columns)} if scope else {}
    return {name: kind for name, kind in found.items() if kind}


def _of_output(scope: Scope, at: int) -> str:
    """Return the type of the column at a position of a scope's result."""
    if scope.set_operation_scopes:
        kinds = {_of_output(branch, at) for branch in scope.set_operation_scopes}
        return kinds.pop() if len(kinds) == 1 else ""
    selects = scope.expression.selects if isinstance(scope.expression, exp.Query) else []
    return reader_type(selects[at], partial(_of_column, scope)) if at < len(selects) else ""


def _of_column(scope: Scope, column: exp.Column) -> str:
    source = scope.sources.get(column.table)
    if not isinstance(source, Scope) or not isinstance(source.expression, exp.Query):
        return ""
    names = source.outer_columns or source.expression.named_selects
    return _of_output(source, names.index(column.name)) if column.name in names else ""


def _in_type(kind: exp.DataType) -> str:
    """Return the first such type within a type."""
    return next((_TYPES[each.this] for each in kind.find_all(exp.DataType) if each.this in _TYPES), "")


def _in_text(arguments: list[exp.Expr]) -> str:
    """Return the first such type within the type, or the columns, that an argument states."""
    text = arguments[0].name if arguments and isinstance(arguments[0], exp.Literal) else ""
    try:  # as the fields of a struct, since a field may have the name of a type
        return _in_type(exp.DataType.build(f"struct<{text}>", dialect="spark"))
    except SqlglotError:
        return ""
