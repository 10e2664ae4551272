"""What a part of a query reads of its sources, and how the values are found that a changed row affects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from sqlglot import ErrorLevel, exp
from sqlglot.errors import UnsupportedError

from millrace.sql.query.names import UntraceableError, short
from millrace.sql.query.parentheses import outline, with_parentheses
from millrace.sql.query.reach import sum_of
from millrace.sql.query.select_query import query_of

NO_LOOKBACK = timedelta()
CHANGED = "_changed_"
"""Before the alias of a source: the view of its changed rows, as they were and as they are."""

Texts = tuple[str, ...]
"""Spark SQL over the columns of one source, for each part of a value."""


@dataclass(frozen=True)
class Hop:
    """One step of a lookup: the values of the rows of tables that a key joins.

    Attributes:
        name: the table of FROM for which the key stands.
        columns: its columns that are the parts of the key.
        rows: the named subqueries, and FROM with the other tables.
        on: what the join requires.
        values: the parts of the values.
    """

    name: str
    columns: Texts
    rows: tuple[str, str]
    on: Texts
    values: Texts


@dataclass(frozen=True)
class Lookup:
    """How the values are found that a changed row of a source affects: by its key, and by joins of other tables.

    Attributes:
        alias: the source.
        keys: a SELECT of the keys of its changed rows.
        hops: what leads to the values, which are those of the last hop.
        like: a SELECT whose columns must have the types of the keys; empty if they have by themselves.
    """

    alias: str
    keys: str
    hops: tuple[Hop, ...]
    like: str = ""

    @property
    def query(self) -> str:
        """The SELECT of the values, with their parts as `v0`, `v1` and so on.

        >>> hop = Hop("w", ("id",), ("", "FROM f"), ("`w`.`id` = `f`.`w_id`",), ("`f`.`day`",))
        >>> print(Lookup("w", "SELECT id FROM _changed_w", (hop,)).query)
        SELECT DISTINCT `f`.`day` AS v0 FROM f
        LEFT SEMI JOIN (SELECT id FROM _changed_w) AS `w` (`id`) ON (`w`.`id` = `f`.`w_id`)
        """
        found = self.keys
        for hop in self.hops:
            named, tables = hop.rows
            columns, on = ", ".join(f"`{each}`" for each in hop.columns), " AND ".join(f"({each})" for each in hop.on)
            values = ", ".join(f"{text} AS v{at}" for at, text in enumerate(hop.values))
            key = f"({found}) AS `{hop.name}` ({columns})"
            found = f"{named}SELECT DISTINCT {values} {tables}\nLEFT SEMI JOIN {key} ON {on}"
        return found

    def __str__(self) -> str:
        """What compares the joined rows, without what only filters those of one side."""
        compared = " and ".join(each for hop in self.hops for each in hop.on if f"`{hop.name}`." in each)
        return compared.replace("`", "").replace("IS NOT DISTINCT FROM", "<=>")


@dataclass(frozen=True)
class Reads:
    """What a part of a query reads: alias -> values by which rows are chosen; alias -> why all rows are read.

    Also the groups of values, each with its alias, that must have the same type; how far back the rows may be; and the
    lookups of sources of which all rows are read.
    """

    values: dict[str, list[exp.Expr]] = field(default_factory=dict)
    whole: dict[str, str] = field(default_factory=dict)
    alike: list[list[tuple[str, exp.Expr]]] = field(default_factory=list)
    reach: timedelta = NO_LOOKBACK
    lookups: tuple[Lookup, ...] = ()

    def further_back(self, by: timedelta) -> Reads:
        """Return the same of rows that are further back."""
        return replace(self, reach=sum_of(self.reach, by))

    def __add__(self, other: Reads) -> Reads:
        aliases = dict.fromkeys([*self.values, *other.values])
        values = {alias: [*self.values.get(alias, ()), *other.values.get(alias, ())] for alias in aliases}
        whole, alike = {**other.whole, **self.whole}, [*self.alike, *other.alike]
        lookups = tuple(dict.fromkeys((*self.lookups, *other.lookups)))
        return Reads(values, whole, alike, max(self.reach, other.reach), lookups)


@dataclass(frozen=True)
class Joined:
    """What the rows of joined tables with a value depend on.

    Attributes:
        reads: what they read of the tables that are traced.
        equal: the values in a joined row that equal it: always (true), or if they are not null (false).
        traced: table of FROM -> the value of its rows.
        untraced: table of FROM -> why it has none.
    """

    reads: Reads
    equal: list[tuple[exp.Expr, bool]]
    traced: dict[str, exp.Expr]
    untraced: dict[str, str] = field(default_factory=dict)


def value_of_parts(parts: Sequence[exp.Expr]) -> exp.Expr:
    """Return the value of one part, or of several ones."""
    return parts[0] if len(parts) == 1 else exp.Tuple(expressions=[part.copy() for part in parts])


def parts_of_value(value: exp.Expr) -> list[exp.Expr]:
    """Return the parts of a value."""
    return list(value.expressions) if isinstance(value, exp.Tuple) else [value]


def columns_of(parts: Sequence[exp.Expr]) -> Texts:
    """Return the parts of a value as Spark SQL, each of which is a column.

    Raises:
        UntraceableError: one is computed; it might fail for rows that the query leaves out.
    """
    for part in parts:
        if not isinstance(part, exp.Column):
            raise UntraceableError(f"a join compares {short(part)}, which is no column of a source")
    return tuple(map(sql_of, parts))


def texts_of(value: exp.Expr) -> Texts:
    """Return the parts of a value as Spark SQL."""
    return tuple(map(sql_of, parts_of_value(value)))


def as_one_text(parts: Texts) -> str:
    """Return the parts of a value as one Spark SQL expression."""
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def sql_of(value: exp.Expr) -> str:
    """Return a value as Spark SQL, if sqlglot reads the same operations on the same columns in it.

    Raises:
        UntraceableError: it does not.
    """
    try:
        text = with_parentheses(value).sql(dialect="spark", unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        raise UntraceableError(f"{short(value)} cannot be written for Spark: {error}") from error
    again = query_of(f"SELECT {text} AS x").tree
    if again is None or outline(again.selects[0].unalias()) != outline(value):
        raise UntraceableError(f"{short(value)} cannot be written for one source")
    return text
