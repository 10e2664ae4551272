"""Lookbacks: what windows and joins may look at, and a random proof that nothing else matters."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from random import Random

import pytest
import sqlglot

from millrace.contracts.spec.duration import UNBOUNDED
from millrace.sql.query.reach import in_words
from millrace.sql.query.trace import trace
from tests.support.model_database import model_database

COLUMNS = {"f": ("day", "a", "b"), "w": ("day", "a", "b")}
WINDOW = "SELECT day, {function} OVER ({partition}ORDER BY {order} {frame}) AS x FROM f"
DAYS = [None, *(date(2013, 1, day) for day in range(1, 11))]
SEMI_JOIN = "LEFT SEMI JOIN w ON w.day BETWEEN f.day - 3 AND f.day"
QUERIES = 300


def window(frame: str, *, function: str = "sum(a)", order: str = "day") -> str:
    return WINDOW.format(function=function, partition="", order=order, frame=frame)


@pytest.mark.parametrize(
    ("query", "reach"),
    [
        (window("RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW"), "6 days"),
        (window("RANGE BETWEEN INTERVAL '36' HOUR PRECEDING AND INTERVAL 1 DAY PRECEDING"), "36 hours"),
        (window("RANGE BETWEEN 6 PRECEDING AND CURRENT ROW"), "6 days"),
        (window("RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW"), "31 days"),
        (window("RANGE CURRENT ROW"), "0 days"),
        (window(""), "unbounded"),
        (window("ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"), "unbounded"),
        (window("", function="rank()", order="day, a"), "unbounded"),
        (window("", function="lag(a)"), "unbounded"),
        ("SELECT f.day, w.a FROM f JOIN w ON w.day BETWEEN date_sub(f.day, 2) AND f.day", "2 days"),
        ("SELECT f.day, w.a FROM f LEFT JOIN w ON f.day <= w.day + INTERVAL 2 DAYS AND w.day < f.day", "2 days"),
        ("SELECT f.day, w.a FROM f, w WHERE date_add(w.day, 2) >= f.day AND f.day >= w.day", "2 days"),
        (window("RANGE 2 PRECEDING").replace("FROM f", f"FROM (SELECT f.day, f.a FROM f {SEMI_JOIN})"), "5 days"),
    ],
)
def test_the_rows_of_a_value_reach_back_as_far_as_windows_and_joins_together(query: str, reach: str) -> None:
    found = trace(query, "day", COLUMNS, UNBOUNDED)
    assert (found.reason, in_words(found.reach)) == ("", reach)
    assert not found.whole
    if found.reach:
        less = min(found.reach, timedelta(days=1000)) - timedelta(hours=1)
        assert trace(query, "day", COLUMNS, less).reason.endswith(f"write `lookback: {reach}`")


@pytest.mark.parametrize(
    "query",
    [
        window("RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND INTERVAL 1 DAY FOLLOWING"),
        window("RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"),
        window("", order="day DESC"),
        window("", order="a"),
        window("RANGE BETWEEN b PRECEDING AND CURRENT ROW"),
        window("RANGE BETWEEN INTERVAL -1 DAYS PRECEDING AND CURRENT ROW"),
        window("", function="lead(a)"),
        window("", function="ntile(2)"),
        window("", function="percent_rank()"),
        window("", function="cume_dist()"),
        "SELECT day, sum(a) OVER () AS x FROM f",
        "SELECT day, sum(a) OVER w AS x FROM f WINDOW w AS (ORDER BY day)",
    ],
)
def test_a_window_that_may_see_later_values_is_not_traced(query: str) -> None:
    assert "window" in trace(query, "day", COLUMNS, UNBOUNDED).reason


@pytest.mark.parametrize(
    "condition",
    [
        "w.day <= f.day",
        "w.day >= date_sub(f.day, 2)",
        "w.day BETWEEN date_sub(f.day, 2) AND date_add(f.day, 1)",
        "w.day BETWEEN f.day - w.a AND f.day",
        "w.day BETWEEN f.day - INTERVAL 1 MONTH AND f.day",
        "w.day BETWEEN date_sub(f.day, 2) AND f.day OR w.a = 1",
        "NOT (w.day BETWEEN date_sub(f.day, 2) AND f.day)",
    ],
)
def test_a_join_that_does_not_say_how_far_back_it_reaches_finds_the_days_of_changed_rows(condition: str) -> None:
    found = trace(f"SELECT f.day, w.a FROM f LEFT JOIN w ON {condition}", "day", COLUMNS, timedelta(days=7))
    assert (list(found.expressions), list(found.lookups), found.reach) == (["f"], ["w"], timedelta())


class Writer:
    """Writes queries over `f` and `w`, whose rows depend on earlier days, or look as if they did."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def query(self, depth: int) -> str:
        kind, table = self._random.random(), self._table(depth)
        if kind < 0.5:
            return f"SELECT day, a, {self._window()} AS b FROM {table} AS t"
        if kind < 0.7:
            return f"SELECT day, a, {self._window().replace('(b)', '(sum(b))')} AS b FROM {table} AS t GROUP BY day, a"
        join = self._random.choice(("", "LEFT ", "LEFT SEMI ", "LEFT ANTI "))
        value = "t.b" if len(join) > 5 else "count(u.b)"
        tail = " GROUP BY t.day, t.a" if value != "t.b" else ""
        tables = f"{table} AS t {join}JOIN {self._table(depth)} AS u ON {self._on()}"
        return f"SELECT t.day, t.a, {value} AS b FROM {tables}{tail}"

    def _table(self, depth: int) -> str:
        if depth and self._random.random() < 0.7:
            return f"({self.query(depth - 1)})"
        return self._random.choice(("f", "w"))

    def _window(self) -> str:
        pick = self._random.choice
        function = pick(("sum(b)", "sum(b)", "count(b)", "max(b)", "rank()", "lag(b)", "lead(b)", "cume_dist()"))
        start = pick(("INTERVAL 1 DAYS PRECEDING", "INTERVAL 2 DAYS PRECEDING", "UNBOUNDED PRECEDING", "CURRENT ROW"))
        end = pick(("CURRENT ROW", "CURRENT ROW", "CURRENT ROW", "INTERVAL 1 DAYS FOLLOWING"))
        frame = f"RANGE BETWEEN {start} AND {end}" if "(b)" in function and "a" not in function else ""
        partition = pick(("", "PARTITION BY a ", "PARTITION BY day "))
        order = pick(("day", "day", "day", "day DESC", "day NULLS LAST"))
        return f"{function} OVER ({partition}ORDER BY {order} {frame})"

    def _on(self) -> str:
        pick = self._random.choice
        first, last = (f"t.day {sign} INTERVAL {pick((0, 1, 2))} DAYS" for sign in ("-", pick(("-", "-", "+"))))
        more = pick(("", "", " AND t.a = u.a", " OR t.a = u.a"))
        return pick(
            (f"u.day >= {first} AND u.day <= {last}{more}", f"u.day BETWEEN {first} AND t.day{more}", "u.day <= t.day")
        )


def test_the_rows_of_a_day_depend_only_on_the_days_of_its_lookback() -> None:
    random, database, seen = Random(0), model_database(), Counter[str]()
    for _ in range(QUERIES):
        query, lookback = Writer(random).query(2), random.choice((timedelta(days=2), timedelta(days=4), UNBOUNDED))
        found = trace(query, "day", COLUMNS, lookback)
        if found.reason or not found.reach:
            continue
        seen.update({"unbounded": lookback == UNBOUNDED, "joined": "JOIN" in query and not found.whole, "all": True})
        computed = random.sample(DAYS if lookback != UNBOUNDED else DAYS[1:], 2)
        for alias in COLUMNS:
            rows = [(random.choice(DAYS), random.randint(0, 1), random.choice(("NULL", 1, 2))) for _ in range(12)]
            values = ", ".join(f"({literal(day)}, {a}, {b})" for day, a, b in rows)
            database.sql(f"CREATE OR REPLACE TABLE all_{alias} AS FROM (VALUES {values}) AS t (day, a, b)")
            database.sql(f"CREATE OR REPLACE VIEW {alias} AS FROM all_{alias}")
        text = sqlglot.transpile(query, read="spark", write="duckdb")[0]
        expected = Counter(row for row in database.sql(text).fetchall() if row[0] in computed)
        for alias in COLUMNS:
            read = " OR ".join(is_read(found.expressions.get(alias, ()), day, lookback) for day in computed)
            where = "TRUE" if alias in found.whole else read
            database.sql(f"CREATE OR REPLACE VIEW {alias} AS FROM all_{alias} WHERE {where}")
        rows = Counter(row for row in database.sql(text).fetchall() if row[0] in computed)
        assert rows == expected, (query, lookback, computed)
        seen["rows"] += len(expected)
    assert seen["all"] > QUERIES * 0.1
    assert min(seen["unbounded"], seen["joined"], seen["rows"]) > 10


def literal(day: date | None) -> str:
    return f"DATE '{day}'" if day else "NULL::DATE"


def is_read(texts: tuple[str, ...], day: date | None, lookback: timedelta) -> str:
    """Return SQL for the rows that a run which computes a day reads."""
    first = None if lookback == UNBOUNDED or day is None else day - lookback
    of_day = "{0} IS NULL" if day is None else f"{{0}} BETWEEN {literal(first)} AND {literal(day)}"
    if lookback == UNBOUNDED:
        of_day = f"{{0}} <= {literal(day)} OR {{0}} IS NULL"
    columns = [sqlglot.transpile(text, read="spark", write="duckdb")[0] for text in texts]
    return " OR ".join(of_day.format(column) for column in columns) or "FALSE"
