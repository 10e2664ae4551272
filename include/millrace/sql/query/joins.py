"""The joins of a SELECT, and the values that they require to be equal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
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
"""The kinds of joins by whose condition changed rows find all joined rows that they affect: rows of the joined table
find rows before it, and rows before it find rows of the joined table."""
_ORDERS = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)

Pair = tuple[exp.Expr, exp.Expr, bool]
"""Two values that are equal, and whether by `=`, which null never fulfils; else by `<=>`."""


@dataclass(frozen=True)
class Join:
    """One table of FROM, and how it joins the tables before it.

    Attributes:
        item: the table, or the subquery.
        name: the name by which columns refer to it.
        kind: `inner`, `left`, `right`, `full`, `semi` or `anti`.
        node: the part of FROM as the query has it.
        conditions: what is true for each pair of joined rows, with each column as `<table of FROM>.<column>`.
    """

    item: exp.Expr
    name: str
    node: exp.Expr
    kind: str = "inner"
    conditions: tuple[exp.Expr, ...] = ()

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
            if tables_of(right) == {self.name} and any(left == each and (is_strict or exact) for each, exact in equal):
                return right
        return None

    def left_partner_of(self, value: exp.Expr, before: set[str]) -> exp.Expr | None:
        """Return the value of the tables before this one that equals a value of it in each joined row."""
        for left, right, _ in self._oriented:
            if right == value and tables_of(left) and tables_of(left) <= before:
                return left
        return None

    def columns_equal_to(self, value: exp.Expr, tables: set[str]) -> dict[exp.Expr, exp.Expr] | None:
        """Return column of a value -> what of these tables equals it in each joined row; None if one has none."""
        found: dict[exp.Expr, exp.Expr] = {}
        for column in value.find_all(exp.Column):
            others = (
                right
                for left, right, is_strict in self._oriented
                if is_strict and left == column and tables_of(right) and tables_of(right) <= tables
            )
            if (other := next(others, None)) is None:
                return None
            found[column] = other
        return found

    def earlier_partner_of(self, values: Iterable[exp.Expr]) -> tuple[exp.Expr, timedelta] | None:
        """Return the value of this table that is never later than one of the values, and how much earlier it may be."""
        orders = [condition for condition in self.conditions if isinstance(condition, _ORDERS)]
        for value, order in product(values, orders):
            for column in order.find_all(exp.Column):
                reach = reach_of_join(orders, value, column) if column.table == self.name else None
                if reach is not None:
                    return column, reach
        return None

    def equates(self, left: exp.Expr, right: exp.Expr, before: set[str]) -> bool:
        """Whether two rows are joined only if the values are equal, and not null."""
        is_between = tables_of(left) <= before and tables_of(right) == {self.name}
        return is_between and any(pair == (left, right, True) for pair in self._oriented)

    @property
    def _oriented(self) -> Iterator[Pair]:
        """The equal values, both ways."""
        for each in self.conditions:
            if isinstance(each, exp.EQ | exp.NullSafeEQ):
                yield each.this, each.expression, isinstance(each, exp.EQ)
                yield each.expression, each.this, isinstance(each, exp.EQ)


def joins_of(select: exp.Select, names: Names) -> list[Join]:
    """Return the tables of FROM, each with how it joins those before it.

    Raises:
        UntraceableError: the SELECT has no FROM, or a join of a kind that is not traced.
    """
    start = select.args.get("from_")
    if start is None:
        raise UntraceableError(f"{short(select)} has no FROM")
    joins = [Join(start.this, start.this.alias_or_name, start)]
    filters = conditions_of(select.args.get("where"), select, names)
    for at, join in enumerate(select.args.get("joins", []), 1):
        kind = _KINDS.get((join.side, join.kind), "")
        if not kind or join.method or any(value and key not in _PARTS for key, value in join.args.items()):
            raise UntraceableError(f"{short(join)} is not traced")
        name = join.this.alias_or_name
        conditions = conditions_of(join.args.get("on"), select, names, at)
        for column in join.args.get("using") or ():
            left = names.joined_by_using(select, column.name, at - 1) or names.only(select, column.name, at - 1)
            conditions.append(exp.EQ(this=left, expression=exp.column(column.name, table=name, quoted=True)))
        joins.append(Join(join.this, name, join, kind, (*conditions, *(filters if kind == "inner" else ()))))
    if len({join.name for join in joins}) < len(joins):
        raise UntraceableError("two tables of FROM have the same name")
    return joins


def finds_rows(joins: list[Join], one: str, other: str) -> bool:
    """Whether changed rows of a table of FROM find, by the later one's join, all rows of another that they affect.

    An outer join keeps rows of its kept side that match nothing, whatever is compared.
    """
    places = {join.name: at for at, join in enumerate(joins)}
    later = joins[max(places[one], places[other])]
    return later.kind in (_FROM_RIGHT if later.name == one else _FROM_LEFT)


def is_nullable(joins: list[Join], at: int) -> bool:
    """Whether a joined row may have nulls in place of a row of a table of FROM."""
    return joins[at].kind in ("left", "full") or any(join.kind in ("right", "full") for join in joins[at + 1 :])


def tables_of(value: exp.Expr) -> set[str]:
    """Return the tables of FROM whose columns a resolved value has."""
    return {column.table for column in value.find_all(exp.Column)}


def conditions_of(
    condition: exp.Expr | None, select: exp.Select, names: Names, at: int | None = None
) -> list[exp.Expr]:
    """Return what a condition of a SELECT requires, each with its columns as `<table of FROM>.<column>`.

    Args:
        condition: WHERE, or that of a join; nothing is known about parts that are no value of one row.
        select, names, at: as for `Names.resolve`.
    """
    condition = condition.this if isinstance(condition, exp.Where) else condition
    found = []
    for part in condition.flatten() if isinstance(condition, exp.And) else [condition] if condition else []:
        with suppress(UntraceableError):
            found.append(names.resolve(select, part, at))
    return found
