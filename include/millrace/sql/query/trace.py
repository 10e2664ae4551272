"""Which rows of its sources the value of a column of a query comes from.

A column of a query is traced if the rows with one value of it depend only on the rows of the sources in which an
expression has this value. The rules are in ADR 0036. What no rule allows is not traced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from sqlglot import exp

from millrace.sql.query.fields import normalized
from millrace.sql.query.grouping import before_pivots, reach_of_windows, require_grouped_by
from millrace.sql.query.joins import Join, conditions_of, joins_of
from millrace.sql.query.lookups import (
    Reached,
    Steps,
    changed_rows,
    is_equation,
    looked_up_by,
    named_subqueries,
    rows_of,
)
from millrace.sql.query.names import Names, UntraceableError, nodes_of, short, value_of
from millrace.sql.query.parentheses import without_parentheses
from millrace.sql.query.reach import in_words
from millrace.sql.query.reads import (
    NO_LOOKBACK,
    Hop,
    Joined,
    Lookup,
    Reads,
    Texts,
    as_one_text,
    sql_of,
    texts_of,
    value_of_parts,
)
from millrace.sql.query.select_query import query_of
from millrace.sql.query.time_windows import require_separate_windows

_ORDER = frozenset(("order", "sort", "cluster", "distribute"))
_CLAUSES = ("distinct", "from_", "joins", "laterals", "where", "group", "having", "qualify", "windows")
_OF_SELECT = _ORDER | frozenset(("with_", "hint", "expressions", *_CLAUSES))
_OF_OTHERS = _ORDER | frozenset(("with_", "this", "expression", "distinct", "alias"))
_OF_TABLE = frozenset(("this", "alias"))
"""The parts of a SELECT, of UNION and of a table that are traced, or decide about nothing but the order of rows."""


@dataclass(frozen=True)
class Trace:
    """Where the values of a column of a query come from.

    Attributes:
        columns: the columns of the query.
        expressions: alias -> the values that a row of it affects, each as Spark SQL over its own columns; of several
            columns as a list in parentheses.
        parts: the same, with an expression for each column.
        whole: alias -> why a row of it may affect any value.
        alike: groups of (alias, Spark SQL over its own columns) that must have the same type: joins compare them, and
            functions of them stand for each other.
        reason: why the columns are not traced; empty if they are.
        lookback: how far before a value the rows may be on which it depends.
        reach: how far they are at most.
        lookups: alias -> how the values are found that its changed rows affect, besides those of `expressions`. All
            rows of such a source are read.
    """

    columns: tuple[str, ...]
    expressions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    whole: Mapping[str, str] = field(default_factory=dict)
    alike: Sequence[Sequence[tuple[str, str]]] = ()
    reason: str = ""
    lookback: timedelta = NO_LOOKBACK
    reach: timedelta = NO_LOOKBACK
    parts: Mapping[str, tuple[Texts, ...]] = field(default_factory=dict)
    lookups: Mapping[str, tuple[Lookup, ...]] = field(default_factory=dict)


def trace(
    query: str,
    column: str | tuple[str, ...],
    columns: Mapping[str, tuple[str, ...] | None],
    lookback: timedelta = NO_LOOKBACK,
) -> Trace:
    """Trace columns of a query that `SelectQuery.refusals` accepts.

    Args:
        query: the query.
        column: one of its columns, or several.
        columns: alias -> the columns of the source; None if they are not known.
        lookback: how far before a value the rows may be on which it depends.

    >>> trace("SELECT day, count(*) AS n FROM f GROUP BY day", "day", {"f": ("day", "amount")}).expressions
    {'f': ('`day`',)}
    >>> trace("SELECT day, row_number() OVER (ORDER BY day) AS n FROM f", "day", {"f": ("day",)}).reason
    'the window ROW_NUMBER() OVER (ORDER BY day) is not partitioned by f.day'
    """
    tree, traced_columns = query_of(query).tree, (column,) if isinstance(column, str) else column
    if tree is None:
        return Trace(traced_columns, reason="the query cannot be read")
    names = [exp.column(each, quoted=True) for each in traced_columns]
    try:
        tree = normalized(without_parentheses(tree))
        reads = _Tracer(Names(tree, columns), lookback).of_query(tree, value_of_parts(names))
        require_separate_windows(reads.values, columns)
        parts = {alias: tuple(dict.fromkeys(map(texts_of, values))) for alias, values in reads.values.items()}
        alike = [[(alias, sql_of(value)) for alias, value in group] for group in reads.alike]
    except UntraceableError as error:
        return Trace(traced_columns, reason=str(error))
    except RecursionError:
        return Trace(traced_columns, reason="the query is too long or nested too deeply")
    if reads.reach > lookback:
        return Trace(
            traced_columns, reason=f"it depends on rows further back: write `lookback: {in_words(reads.reach)}`"
        )
    traced = {alias: tuple(map(as_one_text, values)) for alias, values in parts.items() if alias not in reads.whole}
    if not any("`" in each for values in traced.values() for each in values):
        same = f"{', '.join(traced_columns)} is the same in all rows"
        return Trace(traced_columns, reason=next(iter(reads.whole.values()), same))
    of_traced = {alias: parts[alias] for alias in traced}
    lookups = {
        alias: tuple(each for each in reads.lookups if each.alias == alias)
        for alias in dict.fromkeys(each.alias for each in reads.lookups)
        if alias not in reads.whole
    }
    return Trace(traced_columns, traced, reads.whole, alike, "", lookback, reads.reach, of_traced, lookups)


@dataclass(frozen=True)
class _Tracer:
    names: Names
    lookback: timedelta

    def of_query(self, query: exp.Expr, value: exp.Expr) -> Reads:
        """Return what the rows of a query with a value depend on; `value` is over the columns of its result."""
        _require_traced(query, _OF_SELECT if isinstance(query, exp.Select) else _OF_OTHERS)
        if isinstance(query, exp.Subquery):
            return self.of_query(query.this, value)
        if isinstance(query, exp.SetOperation):
            return self._of_branches(query, value)
        if not isinstance(query, exp.Select):
            raise UntraceableError(f"{short(query)} has no sources")
        return self._of_select(query, value)

    def _of_branches(self, query: exp.SetOperation, value: exp.Expr) -> Reads:
        positions = self.names.by_position(query, value)
        return self.of_query(query.this, positions) + self.of_query(query.expression, positions)

    def _of_select(self, select: exp.Select, value: exp.Expr) -> Reads:
        stated = value_of(value, lambda column: self.names.definition(select, column.name))
        resolved = self.names.resolve(select, stated)
        joins = joins_of(select, self.names)
        reach = reach_of_windows(select, resolved, self.names, self.lookback)
        require_grouped_by(select, resolved, self.names)
        joined = self._of_joins(joins, len(joins) - 1, resolved)
        reads = (joined.reads + self._of_untraced(select, joins, joined, resolved)).further_back(reach)
        for node in nodes_of(select):
            is_table = isinstance(node.parent, exp.From | exp.Join | exp.CTE) and node.arg_key == "this"
            if isinstance(node, exp.Query) and not is_table:
                reads += self._whole(node, f"the subquery {short(node)} reads all rows")
        return reads

    def _of_joins(self, joins: list[Join], at: int, value: exp.Expr) -> Joined:
        """Return what the rows of the first joins with a value depend on."""
        join = joins[at]
        if at == 0:
            return Joined(self._of_item(join.item, value), [(value, True)], {join.name: value})
        used = {column.table for column in value.find_all(exp.Column)}
        before = {each.name for each in joins[:at]}
        if used <= before and join.keeps_left:
            return self._with_joined(joins, at, value, self._of_joins(joins, at - 1, value))
        if used == {join.name} and join.keeps_right:
            left, own = self._of_left(joins, at, value), self._of_item(join.item, value)
            equal = [(value, True), *((each, exact and join.is_inner) for each, exact in left.equal)]
            return Joined(own + left.reads, equal, {join.name: value, **left.traced}, left.untraced)
        if isinstance(value, exp.Coalesce) and len(value.expressions) == 1:
            one, other = value.this, value.expressions[0]
            if join.equates(one, other, before):
                left = self._of_joins(joins, at - 1, one)
                reads = left.reads + self._of_item(join.item, other)
                return Joined(reads, [], {**left.traced, join.name: other}, left.untraced)
        if used <= before or used == {join.name}:
            raise UntraceableError(f"{short(value)} is null in rows that the outer join with {join.name} adds")
        raise UntraceableError(f"{short(value)} is computed from {' and '.join(sorted(used))}")

    def _with_joined(self, joins: list[Join], at: int, value: exp.Expr, left: Joined) -> Joined:
        """Return the same with a table that is joined to those that have the value."""
        join, reach, alike = joins[at], NO_LOOKBACK, Reads()
        partner = own = join.partner_of(left.equal)
        if partner is None:
            partner, alike = self._partner_by_columns(joins, at, value, {join.name})
            own = partner
        if own is None and self.lookback and (earlier := join.earlier_partner_of(each for each, _ in left.equal)):
            own, reach = earlier
        is_equal = bool(partner) and join.is_visible and (join.is_inner or not alike.alike)
        equal = [*left.equal, *([(partner, join.is_inner)] if partner and is_equal else [])]
        why = f"no value of {join.name} is joined to {short(value)}"
        if own is not None:
            try:
                reads = left.reads + self._of_item(join.item, own).further_back(reach) + alike
                return Joined(reads, equal, {**left.traced, join.name: own}, left.untraced)
            except UntraceableError as error:
                why = str(error)
        return Joined(left.reads + alike, equal, left.traced, {**left.untraced, join.name: why})

    def _of_left(self, joins: list[Join], at: int, value: exp.Expr) -> Joined:
        """Return the same of the joins before one whose own table has the value."""
        before = {each.name for each in joins[:at]}
        why = f"no value of {', '.join(sorted(before))} is joined to {short(value)}"
        try:
            if partner := joins[at].left_partner_of(value, before):
                return self._of_joins(joins, at - 1, partner)
            partner, alike = self._partner_by_columns(joins, at, value, before)
            if partner:
                left = self._of_joins(joins, at - 1, partner)
                return replace(left, reads=left.reads + alike, equal=left.equal if joins[at].is_inner else [])
        except UntraceableError as error:
            why = str(error)
        return Joined(Reads(), [], {}, {each.name: why for each in joins[:at]})

    def _of_untraced(self, select: exp.Select, joins: list[Join], joined: Joined, value: exp.Expr) -> Reads:
        """Return the lookups of the tables that have no value of their own; those without a lookup are read whole."""
        items, untraced, reads = {join.name: join.item for join in joins}, dict(joined.untraced), Reads()
        steps = Steps(self.names, joins, conditions_of(select.args.get("where"), select, self.names), value)
        settled = [*joined.traced]
        reached = [Reached(each) for each in dict.fromkeys((value, *joined.traced.values()))]
        for target in reached:  # grows while it is read
            for name in list(untraced):
                if not (step := steps.to(target, name, settled)):
                    continue
                try:
                    of_name, hop = self._lookups(items[name], name, target, *step)
                except UntraceableError as error:
                    untraced[name] = str(error)
                    continue
                reads += of_name
                del untraced[name]
                settled.append(name)
                reached.append(Reached(_columns_of(name, hop.columns), (hop, *target.hops)))
        return sum((self._whole(items[name], why) for name, why in untraced.items()), reads)

    def _lookups(
        self, item: exp.Expr, name: str, target: Reached, tables: str, conditions: Mapping[exp.Expr, str]
    ) -> tuple[Reads, Hop]:
        """Return how the changed rows of a table of FROM find a value, and the step from the table to it."""
        rows = changed_rows(self.names, item)
        if rows is None:
            conditions = {each: text for each, text in conditions.items() if is_equation(each)}
        compared = (column for each in conditions for column in each.find_all(exp.Column) if column.table == name)
        columns = tuple(dict.fromkeys(column.name for column in compared))
        if not columns:
            raise UntraceableError(f"no value of {name} is joined to {short(target.value)}")
        named = named_subqueries(self.names, tables)
        hop = Hop(name, columns, (named, tables), tuple(conditions.values()), texts_of(target.value))
        hops, listed = (hop, *target.hops), ", ".join(f"`{column}`" for column in columns)
        if rows:
            source, select = rows
            return Reads(lookups=(Lookup(source, f"SELECT {listed} FROM ({select})", hops),)), hop
        found = replace(self, lookback=NO_LOOKBACK)._of_item(item, _columns_of(name, columns))
        return looked_up_by(found, f"SELECT {listed} FROM ({rows_of(self.names, item)})", hops), hop

    def _partner_by_columns(
        self, joins: list[Join], at: int, value: exp.Expr, tables: set[str]
    ) -> tuple[exp.Expr | None, Reads]:
        """Return the same function of the columns that a join compares with those of a value, if it compares all.

        1 equals '1', but functions of them differ: so the columns must have the same type.
        """
        equal = joins[at].columns_equal_to(value, tables)
        if not equal:
            return None, Reads()
        alike = []
        try:
            for one, other in equal.items():
                both = [self._of_side(joins, at, side) for side in (one, other)]
                alike += [group for reads in both for group in reads.alike]
                alike.append([(alias, each) for reads in both for alias, of in reads.values.items() for each in of])
        except UntraceableError:
            return None, Reads()
        return value_of(value, lambda column: equal[column]), Reads(alike=alike)

    def _of_side(self, joins: list[Join], at: int, value: exp.Expr) -> Reads:
        is_right = any(column.table == joins[at].name for column in value.find_all(exp.Column))
        return self._of_item(joins[at].item, value) if is_right else self._of_joins(joins, at - 1, value).reads

    def _of_item(self, item: exp.Expr, value: exp.Expr) -> Reads:
        """Return what a table of FROM depends on; `value` is over its columns."""
        own = value_of(value, lambda column: exp.column(column.name, quoted=True))
        item = before_pivots(item, own, self.names) if item.args.get("pivots") else item
        stated = self.names.before_renaming(item, own)
        if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Query):
            return self.of_query(item, stated)
        _require_traced(item, _OF_TABLE)
        if not isinstance(item, exp.Table) or isinstance(item.this, exp.Func):
            raise UntraceableError(f"{short(value)} comes out of {short(item)}")
        if cte := self.names.ctes.get(item.name):
            return self.of_query(cte.this, self.names.before_renaming(cte, stated))
        return Reads({item.name: [stated]})

    def _whole(self, part: exp.Expr, why: str) -> Reads:
        return Reads(whole=dict.fromkeys(self.names.sources_in(part), why))


def _require_traced(part: exp.Expr, traced: frozenset[str]) -> None:
    for key, value in part.args.items():
        if value and key not in traced:
            raise UntraceableError(f"{key.rstrip('_').upper()} is not traced: {short(part)}")


def _columns_of(table: str, columns: Sequence[str]) -> exp.Expr:
    return value_of_parts([exp.column(each, table=table, quoted=True) for each in columns])
