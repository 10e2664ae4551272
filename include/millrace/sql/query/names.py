"""The names in a query: what each column of a result is computed from, and in which table of FROM a column is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from sqlglot import exp

from millrace.sql.expression import is_aggregate
from millrace.sql.query.fields import field_of
from millrace.sql.query_functions import ROW_GENERATORS, SESSIONS, WINDOWS_OF_TIME

_POSITION = "#"
_TUMBLING = 2
"""The arguments of a `window` that slides by its own length, so that each row is in one of them."""

_Columns = dict[str, tuple[str, ...] | None]
"""Table of FROM -> its columns, with "" for those that Spark names; None if they are not known."""


class UntraceableError(Exception):
    """A value cannot be traced; the text says why."""


class Names:
    """The names in a normalized query.

    Args:
        tree: the query.
        columns: alias -> the columns of the source; None if they are not known.
    """

    def __init__(self, tree: exp.Query, columns: Mapping[str, tuple[str, ...] | None]) -> None:
        self.tree = tree
        self._columns = columns

    @cached_property
    def ctes(self) -> dict[str, exp.CTE]:
        """Name -> named subquery.

        Raises:
            UntraceableError: one reads itself.
        """
        if any(part.recursive for part in self.tree.find_all(exp.With)):
            raise UntraceableError("WITH RECURSIVE is not traced")
        return {cte.alias: cte for cte in self.tree.find_all(exp.CTE)}

    def sources_in(self, part: exp.Expr) -> list[str]:
        """Return the aliases of all sources that a part of the query reads, in its order."""
        tables = (table for table in part.find_all(exp.Table, bfs=False) if not isinstance(table.this, exp.Func))
        names = dict.fromkeys(table.name for table in tables)
        found = [name for name in names if name in self._columns]
        for name in names:
            found += self.sources_in(self.ctes[name].this) if name in self.ctes else ()
        return found

    def by_position(self, query: exp.Expr, value: exp.Expr) -> exp.Expr:
        """Return a value over the columns of UNION, INTERSECT or EXCEPT as one over the positions of these columns.

        Raises:
            UntraceableError: a star hides the positions.
        """
        selects = query.selects if isinstance(query, exp.Query) else []
        names = [output_name(select) for select in selects]

        def position(column: exp.Column) -> exp.Expr:
            if column.name.startswith(_POSITION):
                return column
            if names.count(column.name) != 1 or has_hidden_columns(selects):
                raise UntraceableError(f"the columns are not named one by one: {short(query)}")
            return at_position(names.index(column.name))

        return value_of(value, position)

    def definition(self, select: exp.Select, name: str) -> exp.Expr:
        """Return the expression of a column of a SELECT, by its name or its position."""
        if name.startswith(_POSITION):
            position = int(name.removeprefix(_POSITION))
            if has_hidden_columns(select.expressions) or position >= len(select.expressions):
                raise UntraceableError(f"the columns are not named one by one: {short(select)}")
            at_place: exp.Expr = select.expressions[position].unalias()
            return at_place
        stars = []
        for each in select.expressions:
            if isinstance(each, exp.Aliases) and name in (alias.name for alias in each.aliases):
                raise UntraceableError(f"{name} comes out of {short(each.this)}")
            if each.is_star:
                stars.append(each)
            elif output_name(each) == name:
                stated: exp.Expr = each.unalias()
                return stated
        for star in stars:
            if any(node.args.get(key) for node in star.find_all(exp.Star) for key in ("except_", "replace", "rename")):
                raise UntraceableError(f"{short(star)} is not traced: name its columns")
            table = star.table if isinstance(star, exp.Column) else ""
            if not table or name in (self._columns_in(select).get(table) or (name,)):
                return exp.column(name, table=table or None, quoted=True)
        raise UntraceableError(f"there is no column {name} in {short(select)}")

    def resolve(
        self, select: exp.Select, node: exp.Expr, upto: int | None = None, seen: frozenset[str] = frozenset()
    ) -> exp.Expr:
        """Return an expression with each column as `<table of FROM>.<column>`.

        Args:
            select: the SELECT in which it stands.
            node: the expression.
            upto: for the condition of a join: its number, from 1.
            seen: the columns of the SELECT itself that are being resolved.

        Raises:
            UntraceableError: it is not computed from the columns of one row alone.
        """
        for part in node.walk():
            if isinstance(part, exp.Query):
                raise UntraceableError(f"it comes out of the subquery {short(part)}")
            if isinstance(part, exp.Window) or is_aggregate(part) or function_name(part) == SESSIONS:
                raise UntraceableError(f"it comes out of {short(part)}, over several rows")
            if is_generator(part):
                raise UntraceableError(f"it comes out of {short(part)}, which makes several rows of one")
        return value_of(node, lambda column: self._place(select, column, upto, seen))

    def before_renaming(self, part: exp.Expr, value: exp.Expr) -> exp.Expr:
        """Return a value over the columns of `t (a, b)`, in FROM or WITH, as one over what it renames."""
        renamed = part.alias_column_names
        if not renamed:
            return value
        if isinstance(part, exp.Table) and part.name not in self.ctes:
            raise UntraceableError(f"{short(part)} renames the columns of a source")
        if any(column.name not in renamed for column in value.find_all(exp.Column)):
            raise UntraceableError(f"{short(value)} is no column of {short(part)}")
        return value_of(value, lambda column: at_position(renamed.index(column.name)))

    def joined_by_using(self, select: exp.Select, name: str, upto: int | None) -> exp.Expr | None:
        """Return the value of a column that the first joins have in USING; None if they do not."""
        value: exp.Expr | None = None
        for at, join in enumerate(select.args.get("joins", [])[:upto]):
            if name not in [each.name for each in join.args.get("using") or ()]:
                continue
            value = value or self.only(select, name, at)
            right = exp.column(name, table=join.alias_or_name, quoted=True)
            if join.side == "FULL":
                value = exp.Coalesce(this=value, expressions=[right])
            elif join.side == "RIGHT":
                value = right
        return value

    def only(self, select: exp.Select, name: str, upto: int | None) -> exp.Expr:
        """Return the column of the one table of FROM that has it."""
        have = [table for table, own in self._columns_in(select, upto).items() if name in (own or (name,))]
        if len(have) != 1:
            raise UntraceableError(f"{name} is not the name of one column: write <alias>.{name}")
        return exp.column(name, table=have[0], quoted=True)

    def columns_of(self, item: exp.Expr) -> tuple[str, ...] | None:
        """Return the columns of a table of FROM, or of a query; None if they are not known."""
        if item.alias_column_names:
            return tuple(item.alias_column_names)
        if item.args.get("pivots"):
            return None
        if isinstance(item, exp.Table):
            cte = self.ctes.get(item.name)
            return self.columns_of(cte) if cte else self._columns.get(item.name)
        if isinstance(item, exp.CTE | exp.Subquery | exp.SetOperation) and isinstance(item.this, exp.Query):
            return self.columns_of(item.this)  # else it is a join in parentheses
        if not isinstance(item, exp.Select):
            return None
        names: list[str] = []
        for each in item.expressions:
            if isinstance(each, exp.Aliases):
                names += (alias.name for alias in each.aliases)
            elif not each.is_star:
                names.append(output_name(each))
            else:
                tables, table = self._columns_in(item), each.table if isinstance(each, exp.Column) else ""
                for columns in [tables.get(table)] if table else [*tables.values(), *map(_made_by, _views(item))]:
                    if columns is None:
                        return None
                    names += columns
        return tuple(names)

    def _place(self, select: exp.Select, column: exp.Column, upto: int | None, seen: frozenset[str]) -> exp.Expr:
        """Return a column by Spark's rule: `a.b.c` is column b of a table a, if there is one, or else column a."""
        tables, (first, *others) = self._columns_in(select, upto), column.parts
        views = _views(select) if upto is None else ()
        own_of_view = [view for view in views if others and view.alias == first.name]
        if any({"", others[0].name}.intersection(_made_by(view)) for view in own_of_view):
            raise UntraceableError(f"{first.name} is no column of a table in FROM")
        if others and first.name in tables:
            own, name = tables[first.name], others[0].name
            is_own = own is None or not {"", name}.isdisjoint(own)
            if is_own or not any(first.name in (each or ()) for each in tables.values()):
                return field_of(exp.column(name, table=first.name, quoted=True), others[1:])
        return field_of(self._unqualified(select, first.name, tables, upto, seen), others)

    def _unqualified(
        self, select: exp.Select, name: str, tables: _Columns, upto: int | None, seen: frozenset[str]
    ) -> exp.Expr:
        made = {column for view in _views(select) for column in _made_by(view)} if upto is None else set()
        if name in made:
            raise UntraceableError(f"{name} is no column of a table in FROM")
        if value := self.joined_by_using(select, name, upto):
            return value
        if any(name in (own or (name,)) for own in tables.values()):
            return self.only(select, name, upto)
        # A column comes before what SELECT computes, and one that Spark names may have this name.
        are_named = "" not in made.union(*(own or () for own in tables.values()))
        for each in select.expressions if upto is None and are_named else ():
            if isinstance(each, exp.Alias) and each.alias == name and name not in seen:
                return self.resolve(select, each.this, seen=seen | {name})
        calls = {
            node for node in nodes_of(select) if name in (WINDOWS_OF_TIME, SESSIONS) and function_name(node) == name
        }
        if len(calls) == 1:  # Spark computes a window below the SELECT, as a column of this name
            return self.resolve(select, calls.pop(), upto, seen)
        if len(tables) == 1 and name.startswith("_"):  # Millrace's own, which no spec names
            return exp.column(name, table=next(iter(tables)), quoted=True)
        raise UntraceableError(f"{name} is no column of a table in FROM")

    def _columns_in(self, select: exp.Select, upto: int | None = None) -> _Columns:
        """Return table of FROM -> its columns: of those that a SELECT sees, or its join of a number, from 1."""
        start = select.args.get("from_")
        joins = [
            join for join in select.args.get("joins", [])[:upto] if upto is not None or not join.is_semi_or_anti_join
        ]
        tables = [*([start.this] if start else []), *(join.this for join in joins)]
        return {table.alias_or_name: self.columns_of(table) for table in tables}


def _views(select: exp.Select) -> list[exp.Lateral]:
    """Return the LATERAL VIEWs of a SELECT, whose columns only what follows FROM sees."""
    return select.args.get("laterals") or []


def _made_by(view: exp.Lateral) -> tuple[str, ...]:
    """Return the columns of a LATERAL VIEW; "" if Spark names them."""
    return tuple(view.alias_column_names) or ("",)


def at_position(position: int) -> exp.Column:
    """Return the column at a position of a result, from 0."""
    return exp.column(f"{_POSITION}{position}", quoted=True)


def nodes_of(select: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the nodes of a SELECT, also its subqueries and pivots, but nothing of what is in these."""
    for node in select.walk(prune=lambda node: node is not select and isinstance(node, exp.Query | exp.Pivot)):
        if node is not select:
            yield node


def value_of(node: exp.Expr, definition: Callable[[exp.Column], exp.Expr]) -> exp.Expr:
    """Return a copy of an expression with the definition of each column in its place."""
    return node.transform(lambda part: definition(part).copy() if isinstance(part, exp.Column) else part)


def function_name(node: exp.Expr) -> str:
    """Return the name of a function, in small letters; empty for another node."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    return node.sql_names()[0].lower() if isinstance(node, exp.Func) else ""


def has_hidden_columns(selects: Iterable[exp.Expr]) -> bool:
    """Whether the columns of a result are others than its expressions: a star or a generator stands for several."""
    return any(
        each.is_star or isinstance(each, exp.Aliases) or any(map(makes_columns, each.walk())) for each in selects
    )


def output_name(select: exp.Expr) -> str:
    """Return the name of a column of a result as the query states it; empty if Spark makes one up."""
    return select.output_name if isinstance(select, exp.Alias | exp.Column | exp.Subquery) else ""


def short(node: exp.Expr) -> str:
    """Return a part of a query as text of at most 80 characters."""
    text = " ".join(node.sql(dialect="spark").replace("`", "").split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def is_generator(node: exp.Expr) -> bool:
    """Whether a node is a function that makes several rows, or columns, of one, or one row of several.

    Spark makes the rows of a sliding window or a session wherever it is called: a filter by one makes them as well.

    >>> from sqlglot import parse_one
    >>> windows = ("window(at, '1 hour')", "window(at, '1 hour', '30 minutes')", "session_window(at, '1 hour')")
    >>> [is_generator(parse_one(text, dialect="spark")) for text in windows]
    [False, True, True]
    """
    name = function_name(node)
    return makes_columns(node) or name == SESSIONS or (name == WINDOWS_OF_TIME and len(node.expressions) > _TUMBLING)


def makes_columns(node: exp.Expr) -> bool:
    """Whether a node is a function that makes rows, and whose columns it names itself."""
    return function_name(node) in ROW_GENERATORS or isinstance(node, exp.UDTF)
