"""The joins of a SELECT, and the values that they require to be equal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import product

from sqlglot import exp

from millrace.sql.query.names import Names, UntraceableError, short
from millrace.sql.query.reach import reach_of_join

_PARTS = frozenset(("this", "on", "side", "kind", "using", "method"))
_KINDS = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("", "CROSS"): "inner",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right",
    ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full",
    ("FULL", "OUTER"): "full",
    ("", "SEMI"): "semi",
    ("LEFT", "SEMI"): "semi",
    ("", "ANTI"): "anti",
    ("LEFT", "ANTI"): "anti",
}
_FROM_RIGHT = frozenset(("inner", "left", "semi", "anti"))
_FROM_LEFT = frozenset(("inner", "right"))
"""The kinds of joins by whose equality changed rows find all joined rows that they affect: rows of the joined table
find rows before it, and rows before it find rows of the joined table."""

Pair = tuple[exp.Expr, exp.Expr, bool]
"""Two values that are equal, and whether by `=`, which null never fulfils; else by `<=>`."""


@dataclass(frozen=True)
class Join:
    """One table of FROM, and how it joins the tables before it.

    Attributes:
        item: the table, or the subquery.
        name: the name by which columns refer to it.
        kind: `inner`, `left`, `right`, `full`, `semi` or `anti`.
        pairs: the values that are equal in each pair of joined rows.
        orders: what the condition says about the order of values, such as `a <= b`.
    """

    item: exp.Expr
    name: str
    kind: str = "inner"
    pairs: tuple[Pair, ...] = ()
    orders: tuple[exp.Expr, ...] = ()

    @property
    def keeps_left(self) -> bool:
        """Whether each row has the left side's own values."""
        return self.kind in ("inner", "left", "semi", "anti")

    @property
    def keeps_right(self) -> bool:
        """Whether each row has this table's own values."""
        return self.kind in ("inner", "right")

    @property
    def is_inner(self) -> bool:
        """Whether a row always has values of both sides."""
        return self.kind == "inner"

    @property
    def is_visible(self) -> bool:
        """Whether the columns of the table can be named after the join."""
        return self.kind not in ("semi", "anti")

    def partner_of(self, equal: Iterable[tuple[exp.Expr, bool]]) -> exp.Expr | None:
        """Return the value of this table that equals a value in each joined row.

        Args:
            equal: values of the left side that equal it, each with whether it does where it is null, too.
        """
        for left, right, is_strict in self._oriented:
            if _tables(right) == {self.name} and any(left == each and (is_strict or exact) for each, exact in equal):
                return right
        return None

    def left_partner_of(self, value: exp.Expr, before: set[str]) -> exp.Expr | None:
        """Return the value of the tables before this one that equals a value of it in each joined row."""
        for left, right, _ in self._oriented:
            if right == value and _tables(left) and _tables(left) <= before:
                return left
        return None

    def columns_equal_to(self, value: exp.Expr, tables: set[str]) -> dict[exp.Expr, exp.Expr] | None:
        """Return column of a value -> what of these tables equals it in each joined row; None if one has none."""
        found: dict[exp.Expr, exp.Expr] = {}
        for column in value.find_all(exp.Column):
            others = (
                right
                for left, right, is_strict in self._oriented
                if is_strict and left == column and _tables(right) and _tables(right) <= tables
            )
            if (other := next(others, None)) is None:
                return None
            found[column] = other
        return found

    def earlier_partner_of(self, values: Iterable[exp.Expr]) -> tuple[exp.Expr, timedelta] | None:
        """Return the value of this table that is never later than one of the values, and how much earlier it may be."""
        for value, order in product(values, self.orders):
            for column in order.find_all(exp.Column):
                reach = reach_of_join(self.orders, value, column) if column.table == self.name else None
                if reach is not None:
                    return column, reach
        return None

    def equates(self, left: exp.Expr, right: exp.Expr, before: set[str]) -> bool:
        """Whether two rows are joined only if the values are equal, and not null."""
        is_between = _tables(left) <= before and _tables(right) == {self.name}
        return is_between and any(pair == (left, right, True) for pair in self._oriented)

    @property
    def _oriented(self) -> Iterator[Pair]:
        for one, other, is_strict in self.pairs:
            yield one, other, is_strict
            yield other, one, is_strict


def joins_of(select: exp.Select, names: Names) -> list[Join]:
    """Return the tables of FROM, each with how it joins those before it.

    Raises:
        UntraceableError: the SELECT has no FROM, or a join of a kind that is not traced.
    """
    start = select.args.get("from_")
    if start is None:
        raise UntraceableError(f"{short(select)} has no FROM")
    joins = [Join(start.this, start.this.alias_or_name)]
    filters = list(_pairs(select.args.get("where"), select, names, None))
    for at, join in enumerate(select.args.get("joins", []), 1):
        kind = _KINDS.get((join.side, join.kind), "")
        if not kind or join.method or any(value and key not in _PARTS for key, value in join.args.items()):
            raise UntraceableError(f"{short(join)} is not traced")
        name = join.this.alias_or_name
        pairs = list(_pairs(join.args.get("on"), select, names, at))
        for column in join.args.get("using") or ():
            before = [join.name for join in joins]
            left = names.joined_by_using(select, column.name, at - 1) or names.only(select, column.name, before)
            pairs.append((left, exp.column(column.name, table=name, quoted=True), True))
        orders = [*_orders(join.args.get("on"), select, names, at)]
        orders += [*_orders(select.args.get("where"), select, names, None)] if kind == "inner" else []
        pairs += filters if kind == "inner" else []
        joins.append(Join(join.this, name, kind, tuple(pairs), tuple(orders)))
    if len({join.name for join in joins}) < len(joins):
        raise UntraceableError("two tables of FROM have the same name")
    return joins


def compared_columns(joins: list[Join], one: str, other: str) -> list[Pair]:
    """Return the columns (of one table of FROM, of another) by which changed rows of the first find those of the other.

    If a row of the first table appears or disappears, the joined rows change only where these columns are equal: those
    with a row of the other table, or that the change adds to or takes from it. The list is empty if others may change.
    """
    places = {join.name: at for at, join in enumerate(joins)}
    at = max(places[one], places[other])
    # An outer join keeps rows of its kept side that match nothing, whatever is compared.
    if joins[at].kind not in (_FROM_RIGHT if at == places[one] else _FROM_LEFT):
        return []
    by_null = is_nullable(joins, places[one]) or is_nullable(joins, places[other])
    found = [
        (left, right, is_strict)
        for pair in joins[at].pairs
        for left, right, is_strict in (pair, (pair[1], pair[0], pair[2]))
        if isinstance(left, exp.Column) and isinstance(right, exp.Column) and (is_strict or not by_null)
        if (left.table, right.table) == (one, other)
    ]
    return list(dict.fromkeys(found))


def is_nullable(joins: list[Join], at: int) -> bool:
    """Whether a joined row may have nulls in place of a row of a table of FROM."""
    return joins[at].kind in ("left", "full") or any(join.kind in ("right", "full") for join in joins[at + 1 :])


def _pairs(condition: exp.Expr | None, select: exp.Select, names: Names, at: int | None) -> Iterator[Pair]:
    """Yield the values that a condition requires to be equal, as far as it is a conjunction."""
    for part in _conjuncts(condition):
        if isinstance(part, exp.EQ | exp.NullSafeEQ):
            try:
                one, other = (names.resolve(select, side, at) for side in (part.this, part.expression))
            except UntraceableError:
                continue  # nothing is known about this part, as about a part that is no equation
            yield one, other, isinstance(part, exp.EQ)


def _orders(condition: exp.Expr | None, select: exp.Select, names: Names, at: int | None) -> Iterator[exp.Expr]:
    """Yield the comparisons of order that a condition requires, with each column as `<table of FROM>.<column>`."""
    for part in _conjuncts(condition):
        if isinstance(part, exp.LT | exp.LTE | exp.GT | exp.GTE | exp.Between):
            try:
                yield names.resolve(select, part, at)
            except UntraceableError:
                continue  # as above


def _conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    condition = condition.this if isinstance(condition, exp.Where) else condition
    if isinstance(condition, exp.And):
        return list(condition.flatten())
    return [condition] if condition else []


def _tables(value: exp.Expr) -> set[str]:
    return {column.table for column in value.find_all(exp.Column)}
