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

Texts = tuple[str, ...]
"""Spark SQL over the columns of one source, for each part of a value."""


@dataclass(frozen=True)
class Hop:
    """One step of a lookup: the values of the rows that have one of the keys.

    Attributes:
        pairs: (alias, its columns that are compared with the key, the values that its rows have); of several aliases
            the rows of each have values.
        operators: for each part of the key `=` or `<=>`.
    """

    pairs: tuple[tuple[str, Texts, Texts], ...]
    operators: Texts

    @property
    def compared(self) -> list[tuple[str, Texts]]:
        """Each alias with its columns that are compared with the key."""
        return [(alias, compared) for alias, compared, _ in self.pairs]


@dataclass(frozen=True)
class Lookup:
    """How the values are found that a changed row of a source affects: by its key, and by joins of other sources.

    Attributes:
        alias: the source.
        key: its columns that the first hop compares.
        hops: what leads to the values, which are those of the last hop.
    """

    alias: str
    key: Texts
    hops: tuple[Hop, ...]

    def query(self, changed: str) -> str:
        """Return a SELECT of the values, with their parts as `v0`, `v1` and so on, that the rows of a view affect.

        >>> hop = Hop((("f", ("`w_id`",), ("`day`",)),), ("=",))
        >>> print(Lookup("w", ("`id`",), (hop,)).query("changes"))
        SELECT DISTINCT r.v0 FROM (SELECT `w_id` AS k0, `day` AS v0 FROM `f`) AS r
        LEFT SEMI JOIN (SELECT `id` AS v0 FROM `changes`) AS c ON r.k0 = c.v0
        """
        found = f"SELECT {_listed('v', self.key)} FROM `{changed}`"
        for hop in self.hops:
            selects = (
                f"SELECT {_listed('k', near)}, {_listed('v', far)} FROM `{alias}`" for alias, near, far in hop.pairs
            )
            rows = " UNION ALL ".join(selects)
            columns = ", ".join(f"r.v{at}" for at in range(len(hop.pairs[0][2])))
            is_equal = " AND ".join(f"r.k{at} {operator} c.v{at}" for at, operator in enumerate(hop.operators))
            found = f"SELECT DISTINCT {columns} FROM ({rows}) AS r\nLEFT SEMI JOIN ({found}) AS c ON {is_equal}"
        return found

    def __str__(self) -> str:
        steps, key, alias = [], self.key, self.alias
        for hop in self.hops:
            near, compared, values = hop.pairs[0]
            parts = zip(key, hop.operators, compared, strict=True)
            steps += [f"{alias}.{one} {operator} {near}.{other}" for one, operator, other in parts]
            alias, key = near, values
        return " and ".join(steps).replace("`", "")


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

    def looked_up_by(self, hops: tuple[Hop, ...]) -> Reads:
        """Return the lookups of these sources, if the values by which their rows are chosen are keys of the first hop.

        Raises:
            UntraceableError: a key is computed.
        """
        if self.alike:
            raise UntraceableError("a join compares functions of the keys")
        own = (
            Lookup(alias, columns_of(parts_of_value(value)), hops)
            for alias, values in self.values.items()
            for value in values
        )
        further = (replace(lookup, hops=(*lookup.hops, *hops)) for lookup in self.lookups)
        return Reads(whole=self.whole, lookups=tuple(dict.fromkeys((*own, *further))))

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


def _listed(name: str, texts: Texts) -> str:
    return ", ".join(f"{text} AS {name}{at}" for at, text in enumerate(texts))


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
