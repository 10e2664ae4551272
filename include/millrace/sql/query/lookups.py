"""How the values are found that a changed row of a source affects, if its rows have no value of their own.

Changed rows are joined, as the query joins them, to tables of the query that have the values, or have rows whose values
are found in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from millrace.sql.expression import is_aggregate
from millrace.sql.query.fields import as_written
from millrace.sql.query.joins import Join, finds_rows, is_nullable, tables_of
from millrace.sql.query.names import Names, UntraceableError, is_generator, nodes_of
from millrace.sql.query.parentheses import with_parentheses
from millrace.sql.query.reads import CHANGED, Hop, Lookup, Reads, columns_of, parts_of_value, sql_of

_OF_FILTER = frozenset(("expressions", "from_", "where"))
"""The parts of a SELECT that makes one row of each row, or none."""


@dataclass(frozen=True)
class Reached:
    """Values by which changed rows find what they affect: those of the query, or keys of rows that are looked up.

    Attributes:
        value: the value, over tables of FROM.
        hops: what leads from it to the values of the query.
    """

    value: exp.Expr
    hops: tuple[Hop, ...] = ()


@dataclass(frozen=True)
class Steps:
    """The steps that are possible between the tables of one SELECT.

    Attributes:
        names: the names of the query.
        joins: the tables.
        filters: what WHERE requires.
        value: the value that is looked for, over tables of FROM.
    """

    names: Names
    joins: list[Join]
    filters: Sequence[exp.Expr]
    value: exp.Expr

    def to(self, reached: Reached, name: str, settled: Iterable[str]) -> tuple[str, dict[exp.Expr, str]] | None:
        """Return FROM with the rows that changed rows of a table join, and by what; None if these do not find all.

        Args:
            reached: the values that are looked for.
            name: the table.
            settled: the tables of which changed rows find what they affect by themselves.
        """
        places = {join.name: at for at, join in enumerate(self.joins)}
        tables, at = tables_of(reached.value), places[name]
        if not tables or not finds_rows(self.joins, name, other := next(iter(tables))):
            return None
        before = self.joins[:at]
        if tables <= (found := {join.name for join in before}) <= {*settled}:
            is_seen = all(before[places[each]].is_visible and not is_nullable(before, places[each]) for each in tables)
            conditions = self._conditions(at, found, name)
            if (is_seen or reached.value == self.value) and any(name in tables_of(each) for each in conditions):
                return " ".join(_written(join.node) for join in before), conditions
        is_exact = not any(is_nullable(self.joins, places[each]) for each in (name, other))
        conditions = _texts(
            each
            for each in self.joins[max(at, places[other])].conditions
            if tables_of(each) == {name, other} and (is_exact or _needs_values(each))
        )
        if len(tables) > 1 or not conditions:
            return None
        return f"FROM {_written(self.joins[places[other]].item)}", conditions

    def _conditions(self, at: int, before: set[str], name: str) -> dict[exp.Expr, str]:
        """Return what a table, and the tables before it, meet where it is joined to them."""
        own = [each for each in self.joins[at].conditions if tables_of(each) <= {*before, name}]
        own += [each for each in self.filters if tables_of(each) <= before]
        if any(join.kind in ("right", "full") for join in self.joins[at + 1 :]):
            own = [each for each in own if each not in self.filters]  # nulls in place of the rows may meet these
        return _texts(own)


def looked_up_by(reads: Reads, like: str, hops: tuple[Hop, ...]) -> Reads:
    """Return the lookups of sources, if the values by which their rows are chosen are keys of the first hop.

    Raises:
        UntraceableError: a key is computed; it might fail for rows that the query leaves out.
    """
    if reads.alike:
        raise UntraceableError("a join compares functions of the keys")
    own = (
        Lookup(alias, f"SELECT {', '.join(columns_of(parts_of_value(value)))} FROM `{CHANGED}{alias}`", hops, like)
        for alias, values in reads.values.items()
        for value in values
    )
    further = (replace(lookup, hops=(*lookup.hops, *hops)) for lookup in reads.lookups)
    return Reads(whole=reads.whole, lookups=tuple(dict.fromkeys((*own, *further))))


def changed_rows(names: Names, item: exp.Expr) -> tuple[str, str] | None:
    """Return (source, SELECT of the rows that its changed rows make) of a table of FROM; None if others count, too."""
    if not {"this", "alias"}.issuperset(key for key, value in item.args.items() if value) or item.alias_column_names:
        return None
    query = item.this if isinstance(item, exp.Subquery) else None
    if isinstance(item, exp.Table):
        if item.name not in names.ctes:
            is_source = not isinstance(item.this, exp.Func)
            return (item.name, f"SELECT * FROM `{CHANGED}{item.name}`") if is_source else None
        if names.ctes[item.name].alias_column_names:
            return None
        query = names.ctes[item.name].this
    if not isinstance(query, exp.Select) or any(value and key not in _OF_FILTER for key, value in query.args.items()):
        return None
    start = query.args.get("from_")
    if start is None or (inner := changed_rows(names, start.this)) is None:
        return None
    for node in nodes_of(query):
        is_query = isinstance(node, exp.Query | exp.Window) and node is not start.this
        if is_query or is_aggregate(node) or is_generator(node):
            return None
    source, rows = inner
    columns = ", ".join(map(_written, query.expressions))
    where = f" {_written(query.args['where'])}" if query.args.get("where") else ""
    return source, f"SELECT {columns} FROM ({rows}) AS `{start.this.alias_or_name}`{where}"


def rows_of(names: Names, item: exp.Expr) -> str:
    """Return a SELECT of the rows of a table of FROM."""
    tables = f"FROM {_written(item)}"
    return f"{named_subqueries(names, tables)}SELECT * {tables}"


def named_subqueries(names: Names, text: str) -> str:
    """Return WITH and the named subqueries of a query, if a text may read one of them."""
    if not any(f"`{name}`" in text.lower() for name in names.ctes):
        return ""
    parts = [part for each in names.tree.find_all(exp.With) for part in each.expressions]
    return f"WITH {', '.join(map(_written, parts))} "


def _texts(conditions: Iterable[exp.Expr]) -> dict[exp.Expr, str]:
    """Return the conditions that can be written for Spark; without one, more rows are joined."""
    found = {}
    for each in conditions:
        try:
            if not each.find(exp.Struct):  # the fields have the names of columns, as somebody has written these
                found[each] = sql_of(each)
        except UntraceableError:
            continue
    return found


def _needs_values(condition: exp.Expr) -> bool:
    """Whether two columns are compared so that neither may be null."""
    return isinstance(condition, exp.EQ) and is_equation(condition)


def is_equation(condition: exp.Expr) -> bool:
    """Whether a condition compares two columns by `=` or `<=>`."""
    sides = (condition.this, condition.args.get("expression"))
    return isinstance(condition, exp.EQ | exp.NullSafeEQ) and all(isinstance(side, exp.Column) for side in sides)


def _written(node: exp.Expr) -> str:
    return with_parentheses(as_written(node)).sql(dialect="spark")
