"""Which rows of its sources the value of a column of a query comes from.

A column of a query is traced if the rows with one value of it depend only on the rows of the sources in which an
expression has this value. The rules are in ADR 0036. What no rule allows is not traced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from sqlglot import exp
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

from include.sql.query.grouping import reach_of_windows, require_grouped_by
from include.sql.query.joins import Join, joins_of
from include.sql.query.names import Names, UntraceableError, nodes_of, short, value_of
from include.sql.query.parentheses import outline, with_parentheses, without_parentheses
from include.sql.query.reach import in_words, sum_of
from include.sql.query.select_query import query_of

NO_LOOKBACK = timedelta()
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
    """

    columns: tuple[str, ...]
    expressions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    whole: Mapping[str, str] = field(default_factory=dict)
    alike: Sequence[Sequence[tuple[str, str]]] = ()
    reason: str = ""
    lookback: timedelta = NO_LOOKBACK
    reach: timedelta = NO_LOOKBACK
    parts: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)


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
    tree = normalize_identifiers(without_parentheses(tree), dialect="spark")
    for identifier in tree.find_all(exp.Identifier):
        identifier.set("quoted", True)
    try:
        reads = _Tracer(Names(tree, columns), lookback).of_query(tree, _value(traced_columns))
        parts = {alias: tuple(dict.fromkeys(map(_parts, values))) for alias, values in reads.values.items()}
        alike = [[(alias, _sql(value)) for alias, value in group] for group in reads.alike]
    except UntraceableError as error:
        return Trace(traced_columns, reason=str(error))
    if reads.reach > lookback:
        return Trace(
            traced_columns, reason=f"it depends on rows further back: write `lookback: {in_words(reads.reach)}`"
        )
    traced = {alias: tuple(map(_in_one, values)) for alias, values in parts.items() if alias not in reads.whole}
    if not any("`" in each for values in traced.values() for each in values):
        same = f"{', '.join(traced_columns)} is the same in all rows"
        return Trace(traced_columns, reason=next(iter(reads.whole.values()), same))
    of_traced = {alias: parts[alias] for alias in traced}
    return Trace(traced_columns, traced, reads.whole, alike, "", lookback, reads.reach, of_traced)


@dataclass(frozen=True)
class _Reads:
    """What a part of a query reads: alias -> values by which rows are chosen; alias -> why all rows are read.

    Also the groups of values, each with its alias, that must have the same type; and how far back the rows may be.
    """

    values: dict[str, list[exp.Expr]] = field(default_factory=dict)
    whole: dict[str, str] = field(default_factory=dict)
    alike: list[list[tuple[str, exp.Expr]]] = field(default_factory=list)
    reach: timedelta = NO_LOOKBACK

    def further_back(self, by: timedelta) -> _Reads:
        return replace(self, reach=sum_of(self.reach, by))

    def __add__(self, other: _Reads) -> _Reads:
        aliases = dict.fromkeys([*self.values, *other.values])
        values = {alias: [*self.values.get(alias, ()), *other.values.get(alias, ())] for alias in aliases}
        whole, alike = {**other.whole, **self.whole}, [*self.alike, *other.alike]
        return _Reads(values, whole, alike, max(self.reach, other.reach))


@dataclass(frozen=True)
class _Tracer:
    names: Names
    lookback: timedelta

    def of_query(self, query: exp.Expr, value: exp.Expr) -> _Reads:
        """Return what the rows of a query with a value depend on; `value` is over the columns of its result."""
        _require_traced(query, _OF_SELECT if isinstance(query, exp.Select) else _OF_OTHERS)
        if isinstance(query, exp.Subquery):
            return self.of_query(query.this, value)
        if isinstance(query, exp.SetOperation):
            return self._of_branches(query, value)
        if not isinstance(query, exp.Select):
            raise UntraceableError(f"{short(query)} has no sources")
        return self._of_select(query, value)

    def _of_branches(self, query: exp.SetOperation, value: exp.Expr) -> _Reads:
        positions = self.names.by_position(query, value)
        return self.of_query(query.this, positions) + self.of_query(query.expression, positions)

    def _of_select(self, select: exp.Select, value: exp.Expr) -> _Reads:
        stated = value_of(value, lambda column: self.names.definition(select, column.name))
        resolved = self.names.resolve(select, stated)
        reach = reach_of_windows(select, resolved, self.names, self.lookback)
        require_grouped_by(select, resolved, self.names)
        joins = joins_of(select, self.names)
        reads, _ = self._of_joins(joins, len(joins) - 1, resolved)
        reads = reads.further_back(reach)
        for node in nodes_of(select):
            is_table = isinstance(node.parent, exp.From | exp.Join | exp.CTE) and node.arg_key == "this"
            if isinstance(node, exp.Query) and not is_table:
                reads += self._whole(node, f"the subquery {short(node)} reads all rows")
        return reads

    def _of_joins(self, joins: list[Join], at: int, value: exp.Expr) -> tuple[_Reads, list[tuple[exp.Expr, bool]]]:
        """Return what the rows of the first joins with a value depend on.

        Also the values in a joined row that equal it: always (true), or if they are not null (false).
        """
        join = joins[at]
        if at == 0:
            return self._of_item(join.item, value), [(value, True)]
        used = {column.table for column in value.find_all(exp.Column)}
        before = {each.name for each in joins[:at]}
        if used <= before and join.keeps_left:
            reads, equal = self._of_joins(joins, at - 1, value)
            partner, alike = join.partner_of(equal), _Reads()
            if partner is None:
                partner, alike = self._partner_by_columns(joins, at, value, {join.name})
            if partner is None and self.lookback and (earlier := join.earlier_partner_of(each for each, _ in equal)):
                found, reach = earlier
                return reads + self._of_item_or_whole(join.item, found, why="").further_back(reach), equal
            is_equal = bool(partner) and join.is_visible and (join.is_inner or not alike.alike)
            why = f"no value of {join.name} is joined to {short(value)}"
            reads += self._of_item_or_whole(join.item, partner, why) + alike
            return reads, [*equal, *([(partner, join.is_inner)] if partner and is_equal else [])]
        if used == {join.name} and join.keeps_right:
            left, of_left = self._of_left(joins, at, value)
            equal = [(value, True), *((each, exact and join.is_inner) for each, exact in of_left)]
            return self._of_item(join.item, value) + left, equal
        if isinstance(value, exp.Coalesce) and len(value.expressions) == 1:
            left, right = value.this, value.expressions[0]
            if join.equates(left, right, before):
                reads, _ = self._of_joins(joins, at - 1, left)
                return reads + self._of_item(join.item, right), []
        if used <= before or used == {join.name}:
            raise UntraceableError(f"{short(value)} is null in rows that the outer join with {join.name} adds")
        raise UntraceableError(f"{short(value)} is computed from {' and '.join(sorted(used))}")

    def _of_left(self, joins: list[Join], at: int, value: exp.Expr) -> tuple[_Reads, list[tuple[exp.Expr, bool]]]:
        """Return the same of the joins before one whose own table has the value."""
        before = {each.name for each in joins[:at]}
        why = f"no value of {', '.join(sorted(before))} is joined to {short(value)}"
        try:
            if partner := joins[at].left_partner_of(value, before):
                return self._of_joins(joins, at - 1, partner)
            partner, alike = self._partner_by_columns(joins, at, value, before)
            if partner:
                reads, equal = self._of_joins(joins, at - 1, partner)
                return reads + alike, equal if joins[at].is_inner else []
        except UntraceableError as error:
            why = str(error)
        return sum((self._whole(each.item, why) for each in joins[:at]), _Reads()), []

    def _partner_by_columns(
        self, joins: list[Join], at: int, value: exp.Expr, tables: set[str]
    ) -> tuple[exp.Expr | None, _Reads]:
        """Return the same function of the columns that a join compares with those of a value, if it compares all.

        1 equals '1', but functions of them differ: so the columns must have the same type.
        """
        equal = joins[at].columns_equal_to(value, tables)
        if not equal:
            return None, _Reads()
        alike = []
        try:
            for one, other in equal.items():
                both = [self._of_side(joins, at, side) for side in (one, other)]
                alike += [group for reads in both for group in reads.alike]
                alike.append([(alias, each) for reads in both for alias, of in reads.values.items() for each in of])
        except UntraceableError:
            return None, _Reads()
        return value_of(value, lambda column: equal[column]), _Reads(alike=alike)

    def _of_side(self, joins: list[Join], at: int, value: exp.Expr) -> _Reads:
        is_right = any(column.table == joins[at].name for column in value.find_all(exp.Column))
        return self._of_item(joins[at].item, value) if is_right else self._of_joins(joins, at - 1, value)[0]

    def _of_item_or_whole(self, item: exp.Expr, value: exp.Expr | None, why: str) -> _Reads:
        if value is None:
            return self._whole(item, why)
        try:
            return self._of_item(item, value)
        except UntraceableError as error:
            return self._whole(item, str(error))

    def _of_item(self, item: exp.Expr, value: exp.Expr) -> _Reads:
        """Return what a table of FROM depends on; `value` is over its columns."""
        own = value_of(value, lambda column: exp.column(column.name, quoted=True))
        stated = self.names.before_renaming(item, own)
        if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Query):
            return self.of_query(item, stated)
        _require_traced(item, _OF_TABLE)
        if not isinstance(item, exp.Table) or isinstance(item.this, exp.Func):
            raise UntraceableError(f"{short(value)} comes out of {short(item)}")
        if cte := self.names.ctes.get(item.name):
            return self.of_query(cte.this, self.names.before_renaming(cte, stated))
        return _Reads({item.name: [stated]})

    def _whole(self, part: exp.Expr, why: str) -> _Reads:
        return _Reads(whole=dict.fromkeys(self.names.sources_in(part), why))


def _require_traced(part: exp.Expr, traced: frozenset[str]) -> None:
    for key, value in part.args.items():
        if value and key not in traced:
            raise UntraceableError(f"{key.rstrip('_').upper()} is not traced: {short(part)}")


def _value(columns: tuple[str, ...]) -> exp.Expr:
    """Return the value of one column, or the values of several ones."""
    values: list[exp.Expr] = [exp.column(column, quoted=True) for column in columns]
    return values[0] if len(values) == 1 else exp.Tuple(expressions=values)


def _parts(value: exp.Expr) -> tuple[str, ...]:
    """Return the value of each column as Spark SQL."""
    return tuple(map(_sql, value.expressions if isinstance(value, exp.Tuple) else [value]))


def _in_one(parts: tuple[str, ...]) -> str:
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _sql(value: exp.Expr) -> str:
    """Return a value as Spark SQL, if sqlglot reads the same operations on the same columns in it."""
    text = with_parentheses(value).sql(dialect="spark")
    again = query_of(f"SELECT {text} AS x").tree
    if again is None or outline(again.selects[0].unalias()) != outline(value):
        raise UntraceableError(f"{short(value)} cannot be written for one source")
    return text
