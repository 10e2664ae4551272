"""Check the query of a gold table: that it only reads its sources, and that the names in it and about it exist."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sqlglot import exp

from millrace.contracts.spec.table_spec import GoldSpec
from millrace.specs.checks.columns import check_columns, unknown_column
from millrace.specs.checks.expectations import check_expectations
from millrace.specs.checks.properties import READERS
from millrace.specs.problem import Defect, KeyPath, did_you_mean
from millrace.sql.expression import expression_of
from millrace.sql.query.names import function_name, makes_columns
from millrace.sql.query.reader_types import WAY_OUT, reader_type, reader_types
from millrace.sql.query.refresh import lookback_of, refresh_of
from millrace.sql.query.select_query import SelectQuery, query_of
from millrace.sql.query_functions import SESSIONS, WINDOWS_OF_TIME
from millrace.sql.spark_functions import WITHOUT_PARENTHESES


def query_defects(
    spec: GoldSpec, columns: Mapping[str, tuple[str, ...] | None], times: Collection[str]
) -> Iterator[Defect]:
    """Yield what is wrong with the query of a table; nothing for a table without one.

    Args:
        spec: the spec of the table.
        columns: alias -> the columns of its table; None if they are not known.
        times: the columns of these tables that are known to be dates or timestamps.
    """
    if spec.query is None:
        return
    query = query_of(spec.query)
    for refusal in query.refusals(spec.sources, times):
        yield Defect(("query",), refusal.message, None, refusal.fix)
    if query.tree is None:
        return
    yield from _unknown_columns(query, columns)
    document = {**spec.model_dump(mode="json", by_alias=True), "measures": dict.fromkeys(query.columns, "")}
    yield from check_columns(document)
    yield from check_expectations(document)
    if not spec.refresh_columns:
        return
    if unknown := [name for name in spec.refresh_columns if name not in query.columns]:
        yield unknown_column(("refresh_by",), unknown[0], list(query.columns), "the query")
    elif reason := refresh_of(spec, columns).reason:
        which = "this column" if len(spec.refresh_columns) == 1 else "these columns"
        message = f"the query cannot be refreshed by {which}: {reason}"
        needed = lookback_of(spec, columns)
        fix = f"write `lookback: {needed}`" if needed else "write `refresh: full`, or change the query"
        yield Defect(("refresh_by",), message, ", ".join(spec.refresh_columns), fix)


def type_defects(spec: GoldSpec, columns: Mapping[str, tuple[str, ...] | None]) -> Iterator[Defect]:
    """Yield the computed columns that are known to be of a type that raises the table's reader version.

    Args:
        spec: the spec of the table.
        columns: alias -> the columns of its table; None if they are not known.
    """
    found: list[tuple[KeyPath, str, str]] = []
    for name, kind in reader_types(spec.query, columns).items() if spec.query else ():
        found.append((("query",), name, kind))
    for key, expressions in (("group_by", spec.group_by), ("measures", spec.measures)):
        found += [((key, name), name, reader_type(expression_of(text).tree)) for name, text in expressions.items()]
    for path, name, kind in found:
        if kind:
            message = f"the column {name!r} is a {kind}, which raises the table's reader version: {READERS}"
            yield Defect(path, message, None, WAY_OUT[kind])


def _unknown_columns(query: SelectQuery, columns: Mapping[str, tuple[str, ...] | None]) -> Iterator[Defect]:
    """Yield the names that no source and no part of the query has.

    A name in a CTE may hide a column, so this finds less than Spark does, and nothing that Spark would accept.
    """
    tree = query.tree
    if tree is None:
        return
    renamed = {table.alias.lower(): table.name.lower() for table in tree.find_all(exp.Table) if table.alias}
    hidden = {*query.ctes, *(node.alias.lower() for node in tree.find_all(exp.Subquery, exp.Lateral, exp.Values))}
    named = {node.name.lower() for node in tree.find_all(exp.Identifier) if not isinstance(node.parent, exp.Column)}
    of_any = {name for table in columns.values() for name in table or ()}
    makes_names = any(isinstance(node, exp.Pivot | exp.UDTF) or makes_columns(node) for node in tree.walk())
    names_are_known = not makes_names and None not in columns.values()
    made = {function_name(node) for node in tree.find_all(exp.Anonymous)} & {WINDOWS_OF_TIME, SESSIONS}
    tables = {*renamed, *hidden, *(table.name.lower() for table in tree.find_all(exp.Table))}
    for column in dict.fromkeys(tree.find_all(exp.Column)):
        # Parts after the name of the column are fields of a struct.
        first, *others = (part.name.lower() for part in column.parts)
        alias, name = (first, others[0]) if others and first in tables else ("", first)
        source = renamed.get(alias, alias)
        known = columns.get(source) if alias not in hidden else None
        if name.startswith("_") or isinstance(column.this, exp.Star) or (alias and alias in of_any):
            continue
        if known is not None and name not in known:
            fix = did_you_mean(name, known)
            yield Defect(("query",), f"the source {source!r} has no column {name!r}", None, fix)
        elif not alias and names_are_known and name not in {*of_any, *named, *made, *WITHOUT_PARENTHESES}:
            yield Defect(("query",), f"no source has a column {name!r}", None, did_you_mean(name, sorted(of_any)))
