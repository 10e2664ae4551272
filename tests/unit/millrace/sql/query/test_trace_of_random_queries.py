"""Random queries on random rows: the rows with a traced value depend only on the source rows that have this value.

DuckDB computes both sides: the queries are made of what it and Spark compute in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from random import Random

import duckdb
import sqlglot

from millrace.sql.query.select_query import query_of
from millrace.sql.query.trace import Trace, trace
from tests.support.model_database import model_database

COLUMNS = ("a", "b", "c")
SOURCES = ("f", "w")
BY_USING = ""
"""In place of a table: the column that joins have in USING."""
QUERIES = 80
OUTER_JOINS = (
    "SELECT z.b AS a, z.c AS b, x.c AS c FROM f p JOIN w x ON x.a = p.a RIGHT JOIN f z ON z.b = p.b "
    "WHERE p.c = 1 OR p.c IS NULL",
    "SELECT z.c AS a, p.b AS b, x.c AS c FROM f p LEFT JOIN w x ON x.a = p.a JOIN f z ON z.b <=> x.b AND z.a = p.a",
    "SELECT p.b AS a, k.b AS b, count(*) AS c FROM f p LEFT JOIN w x ON x.a = p.a AND x.c > 1 "
    "LEFT JOIN w k ON k.c <=> x.b AND k.a >= p.a GROUP BY 1, 2",
)
"""Queries in which nulls that stand for rows meet conditions."""


class Writer:
    """Writes queries over `f` and `w`, whose columns are all numbers, as are those of each query."""

    def __init__(self, random: Random, joins: Sequence[int] = (0, 0, 1, 1, 2)) -> None:
        self._random = random
        self._joins = joins
        self._aliases = 0

    def query(self, depth: int) -> str:
        kind = self._random.random()
        if depth and kind < 0.15:
            operation = self._random.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
            return f"{self.query(depth - 1)} {operation} {self._select(depth - 1)}"
        if depth and kind < 0.25 and self._aliases == 0:
            name = self._alias()
            return f"WITH {self._renamed(name)} AS ({self.query(depth - 1)}) {self._select(1, [name, *SOURCES])}"
        return self._select(depth)

    def _select(self, depth: int, names: list[str] | None = None) -> str:
        tables, text = self._tables(depth, names)
        where = f" WHERE {self._condition(tables)}" if self._random.random() < 0.4 else ""
        kind = self._random.random()
        if kind < 0.3:
            return self._grouped(tables, f"{text}{where}")
        values = [self._value(tables) for _ in COLUMNS]
        if kind < 0.5:
            values[self._random.randrange(3)] = self._window(tables, values)
        self._random.shuffle(values)
        distinct = "DISTINCT " if kind > 0.9 else ""
        listed = ", ".join(f"{value} AS {name}" for value, name in zip(values, COLUMNS, strict=True))
        limit = " ORDER BY 1, 2, 3 LIMIT 3" if depth == 0 and self._random.random() < 0.03 else ""
        text = f"SELECT {distinct}{listed} FROM {text}{where}{limit}"
        return f"SELECT * FROM ({text})" if limit else text

    def _grouped(self, tables: list[str], text: str) -> str:
        keys = [self._value(tables) for _ in range(self._random.choice([0, 1, 1, 2]))]
        values = [f"sum({self._value(tables)})", "count(*)", f"min({self._value(tables)})"]
        values[: len(keys)] = keys
        if keys and self._random.random() < 0.3:
            values[-1] = f"sum(count(*)) OVER (PARTITION BY {self._random.choice(keys)})"
        self._random.shuffle(values)
        listed = ", ".join(f"{value} AS {name}" for value, name in zip(values, COLUMNS, strict=True))
        return f"SELECT {listed} FROM {text}" + (f" GROUP BY {', '.join(keys)}" if keys else "")

    def _window(self, tables: list[str], values: list[str]) -> str:
        keys = [self._random.choice([*values, self._value(tables)]) for _ in range(self._random.choice([0, 1, 1, 2]))]
        partition = f"PARTITION BY {', '.join(keys)}" if keys else ""
        if self._random.random() < 0.5:
            return f"rank() OVER ({partition} ORDER BY {self._value(tables)})"
        return f"sum({self._value(tables)}) OVER ({partition})"

    def _tables(self, depth: int, names: list[str] | None) -> tuple[list[str], str]:
        alias, text = self._table(depth, names)
        tables, using = [alias], self._random.random() < 0.2
        for _ in range(self._random.choice(self._joins)):
            alias, table = self._table(depth, names)
            kind = self._random.choice(["", "", "LEFT", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI"])
            if using:
                text += f" {kind} JOIN {table} USING (a)"
                tables += [] if "LEFT " in kind else [BY_USING, alias]
                continue
            pairs = [self._equation(tables, alias) for _ in range(self._random.choice([1, 1, 2]))]
            if self._random.random() < 0.25:
                pairs[-self._random.randrange(2) :] = [self._range(tables, alias)]
            glue = " OR " if self._random.random() < 0.1 else " AND "
            text += f" {kind} JOIN {table} ON {glue.join(pairs)}"
            if "LEFT " not in kind:
                tables.append(alias)
        return tables, text

    def _range(self, tables: list[str], alias: str) -> str:
        one, other = f"{self._random.choice(tables)}.b", f"{self._random.choice(tables)}.c"
        return self._random.choice(
            (f"{one} < {alias}.b", f"{alias}.a BETWEEN {one} AND {other}", f"coalesce({one}, 1) = {alias}.b + 1")
        )

    def _equation(self, tables: list[str], alias: str) -> str:
        column = self._random.choice(COLUMNS)
        sides = [f"{self._random.choice(tables)}.{column}", f"{alias}.{self._random.choice([column, column, 'b'])}"]
        self._random.shuffle(sides)
        return f" {self._random.choice(['=', '=', '<=>'])} ".join(sides)

    def _table(self, depth: int, names: list[str] | None) -> tuple[str, str]:
        alias = self._alias()
        if depth and self._random.random() < 0.5:
            return alias, f"({self.query(depth - 1)}) AS {self._renamed(alias)}"
        name = self._random.choice(names or list(SOURCES))
        if self._random.random() < 0.2:
            return alias, f"(SELECT * FROM {name}) AS {self._renamed(alias)}"
        return alias, f"{name} AS {alias}"

    def _condition(self, tables: list[str]) -> str:
        kind, value = self._random.random(), self._value(tables)
        if kind < 0.3 and len(tables) > 1:
            return f"{tables[0]}.a = {tables[-1]}.a"
        if kind < 0.4:
            return f"{value} IN (SELECT {self._random.choice(COLUMNS)} FROM {self._random.choice(SOURCES)})"
        if kind < 0.5:
            return f"EXISTS (SELECT 1 FROM {self._random.choice(SOURCES)} AS x WHERE x.a = {tables[0]}.a)"
        if kind < 0.55:
            return f"{value} < (SELECT max(b) FROM {self._random.choice(SOURCES)})"
        return f"{value} {self._random.choice(['> 0', 'IS NOT NULL', '= 1'])}"

    def _value(self, tables: list[str]) -> str:
        column, other = self._column(tables), self._column(tables)
        forms = [*[column] * 6, f"{column} + 1", f"coalesce({column}, {other})", f"{column} + {other} * 2"]
        return self._random.choice([*forms, f"CASE WHEN {column} > 0 THEN {other} END"])

    def _column(self, tables: list[str]) -> str:
        table, column = self._random.choice(tables), self._random.choice(COLUMNS)
        if table == BY_USING:
            return "a"
        return column if len(tables) == 1 and self._random.random() < 0.5 else f"{table}.{column}"

    def _renamed(self, name: str) -> str:
        return f"{name} ({', '.join(self._random.sample(COLUMNS, 3))})" if self._random.random() < 0.4 else name

    def _alias(self) -> str:
        self._aliases += 1
        return f"t{self._aliases}"


@lru_cache(maxsize=1000)
def for_duckdb(query: str) -> str:
    return sqlglot.transpile(query, read="spark", write="duckdb")[0]


def rows_of(database: duckdb.DuckDBPyConnection, query: str) -> list[tuple[int | None, ...]]:
    return database.sql(for_duckdb(query)).fetchall()


def fill(database: duckdb.DuckDBPyConnection, random: Random) -> None:
    """Make eight random rows of each source: the table `all_<alias>`, and a view `<alias>` of it."""
    for alias in SOURCES:
        values = (random.choices(["NULL", "0", "1", "2", "3"], k=len(COLUMNS)) for _ in range(8))
        rows = ", ".join(f"({', '.join(row)})" for row in values)
        database.sql(f"CREATE OR REPLACE TABLE all_{alias} AS SELECT * FROM (VALUES {rows}) AS t (a, b, c)")
        database.sql(f"CREATE OR REPLACE VIEW {alias} AS SELECT * FROM all_{alias}")


Value = tuple[int | None, ...]


def chosen(rows: list[Value], places: Sequence[int], values: list[Value]) -> Counter[Value]:
    return Counter(row for row in rows if tuple(row[place] for place in places) in values)


def read_only_touched(database: duckdb.DuckDBPyConnection, found: Trace, values: list[Value]) -> None:
    """Make `f` and `w` views of the rows that a run with these values reads."""
    for alias in SOURCES:
        equal = [
            " AND ".join(f"({text} <=> {'NULL' if n is None else n})" for text, n in zip(parts, value, strict=True))
            for parts, value in product(found.parts.get(alias, ()), values)
        ]
        is_whole = alias in {**found.whole, **found.lookups}
        where = "TRUE" if is_whole else " OR ".join(f"({each})" for each in equal) or "FALSE"
        text = for_duckdb(f"SELECT * FROM all_{alias} WHERE {where}")
        database.sql(f"CREATE OR REPLACE VIEW {alias} AS {text}")


def test_the_rows_with_a_traced_value_depend_only_on_the_rows_with_this_value() -> None:
    random, database = Random(0), model_database()
    traced, read_whole, pairs, values_of_all = 0, 0, 0, [None, 0, 1, 2, 3, 4]
    for _ in range(QUERIES):
        query = Writer(random).query(2)
        fill(database, random)
        assert query_of(query).tree is not None, query
        whole = rows_of(database, query)
        for places in ((0,), (1,), (2,), (0, 1), (2, 1)):
            columns = tuple(COLUMNS[place] for place in places)
            found = trace(query, columns, dict.fromkeys(SOURCES, COLUMNS))
            if found.reason:
                continue
            traced, read_whole = traced + 1, read_whole + bool(found.whole)
            values = [tuple(random.choice(values_of_all) for _ in places) for _ in range(2)]
            pairs += len(places) > 1 and any(chosen(whole, places, values))
            read_only_touched(database, found, values)
            rows = rows_of(database, query)
            assert chosen(rows, places, values) == chosen(whole, places, values), (query, found, values)
    assert traced > QUERIES * 0.3
    assert read_whole > QUERIES * 0.05
    assert traced - read_whole > QUERIES * 0.2
    assert pairs > QUERIES * 0.02


def change(database: duckdb.DuckDBPyConnection, random: Random, alias: str) -> None:
    """Replace one or two rows of a source, and make `changed_<alias>` of them as they were and as they are."""
    gone = random.sample(range(8), random.choice([1, 2]))
    rows = database.sql(f"SELECT * FROM all_{alias}").fetchall()
    new = [tuple(random.choice([None, 0, 1, 2, 3]) for _ in COLUMNS) for _ in range(random.choice([0, 1, 2]))]
    for table, values in {
        f"_changed_{alias}": [*(rows[at] for at in gone), *new],
        f"all_{alias}": [*(row for at, row in enumerate(rows) if at not in gone), *new],
    }.items():
        database.sql(f"CREATE OR REPLACE TABLE {table} (a INT, b INT, c INT)")
        database.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", values)


def test_rows_with_other_values_than_those_that_a_change_touches_stay_the_same() -> None:
    random, database = Random(0), model_database()
    looked_up, kept, hops = 0, 0, set()
    for _ in range(QUERIES):
        query = Writer(random, joins=(2, 3)).query(random.choice([0, 0, 1]))
        query = random.choice(OUTER_JOINS) if random.random() < 0.2 else query
        traces = [trace(query, each, dict.fromkeys(SOURCES, COLUMNS)) for each in ("a", "b", "c", ("a", "b"))]
        traces = [each for each in traces if not each.reason and each.lookups]
        if not traces:
            continue
        found = random.choice(traces)
        changed = [random.choice(list(found.lookups))]
        changed += [alias for alias in SOURCES if alias not in {*changed, *found.whole} and random.random() < 0.5]
        fill(database, random)
        before, touched = Counter(rows_of(database, query)), set()
        for alias in changed:
            change(database, random, alias)
        for alias in changed:
            selects = [f"SELECT {', '.join(parts)} FROM _changed_{alias}" for parts in found.parts.get(alias, ())]
            selects += [lookup.query for lookup in found.lookups.get(alias, ())]
            touched |= {row for select in selects for row in rows_of(database, select)}
        after = Counter(rows_of(database, query))
        places = [COLUMNS.index(column) for column in found.columns]
        others = {row for row in before | after if tuple(row[place] for place in places) not in touched}
        assert all(before[row] == after[row] for row in others), (query, found, touched)
        looked_up, kept = looked_up + 1, kept + bool(others)
        hops |= {len(lookup.hops) for lookups in found.lookups.values() for lookup in lookups}
    assert looked_up > QUERIES * 0.05
    assert kept > QUERIES * 0.02
    assert hops >= {1, 2}
