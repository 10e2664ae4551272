"""A text is the time of the run where Spark converts it to a date or a timestamp, and a text elsewhere."""

from __future__ import annotations

import pytest
import sqlglot

from millrace.sql.clock_words import clock_words
from millrace.sql.values.counter_example import CounterExample, counter_example
from millrace.sql.values.terms import term_of

TIMES = ("day", "at")
READING = [
    "DATE'today'", "TIMESTAMP'now'", "timestamp_ntz ' Now '", "CAST('now' AS TIMESTAMP)", "CAST('today' AS DATE)",
    "'now'::timestamp", "try_cast('yesterday' as date)", "date('today')", "timestamp('now')", "to_date('today')",
    "to_timestamp('now')", "to_timestamp_ntz('now')", "to_timestamp_ltz('now')", "try_to_date('today')",
    "try_to_timestamp('now')", "DATE'today UTC'", "TIMESTAMP'tomorrow+01:00'", "to_date(coalesce(null, 'today'))",
    "cast(lower('TODAY') as date)", "day < 'today'", "at >= \"now\"", "day in ('2013-01-01', 'today')",
    "day not in ('today')", "day between 'yesterday' and 'today'", "day <=> 'today'", "day is distinct from 'today'",
    "coalesce(day, 'today')", "nvl(day, ('today'))", "nullif(day, 'today')", "if(f, day, 'today')",
    "case when f then day else 'today' end", "case when f then 'today' when n = 1 then day end",
    "case day when 'today' then 1 end", "array(day, 'today')", "sequence(day, 'today')", "decode(day, 'today', 1)",
    "date_add('today', 1)", "date_sub('today', 1)", "datediff('today', day)", "datediff(day, 'today')",
    "date_diff(day, 'today')", "dateadd(DAY, 1, 'today')", "timestampadd(HOUR, 1, 'now')",
    "timestampdiff(HOUR, 'now', at)", "months_between('today', day)", "add_months('today', 1)", "last_day('today')",
    "next_day('today', 'MO')", "trunc('today', 'MM')", "date_trunc('DAY', 'now')", "date_format('now', 'yyyy')",
    "year('today')", "hour('now')", "dayname('today')", "extract(year from 'today')",
    "from_utc_timestamp('now', 'UTC')",
    "to_utc_timestamp('now', 'UTC')", "convert_timezone('UTC', 'now')", "'today' + interval 1 day",
    "interval 1 day + 'today'", "day - 'yesterday'", "at - 'now'", "day - interval 1 day < 'today'",
    "to_date(t) = 'today'", "max(day) < 'today'", "date_trunc('MONTH', t) > 'today'", "(day) < ('today')",
]  # fmt: skip
"""Expressions that Spark gives another value on another day; `day` and `at` are times, `t` is a text."""

NOT_READING = [
    "t = 'now'", "t in ('today', 'tomorrow')", "t < 'today'", "concat('now', t)", "upper('now')", "DATE'epoch'",
    "timestamp 'epoch'", "named_struct('a', 'today')", "case t when 'now' then day end", "if(t = 'now', day, null)",
    "case when t = 'today' then day else at end", "if(f, t, 'now')", "map(t, 1)['now']", "string('now')",
    "day < '2013-01-01'", "t = 'nowhere'", "t like 'today%'", "to_date('2013-01-01')",
    "t = 'unknown' and day > '2013-01-01'",
    "array_contains(split(t, ','), 'now')", "date_format(day, 'yyyy') = 'now'", "upper(day) = 'TODAY'",
    "day = 'todays'", "'today'",
]  # fmt: skip


def words(text: str, **given: bool) -> list[str]:
    return list(clock_words(sqlglot.parse_one(text, dialect="spark"), TIMES, **given))


def test_a_text_that_becomes_a_time_is_found_and_one_that_stays_a_text_is_not() -> None:
    assert [text for text in READING if not words(text)] == []
    assert [text for text in NOT_READING if words(text)] == []


def test_a_text_is_a_time_where_the_value_of_the_expression_is_one() -> None:
    for text in ("'now'", "coalesce(t, 'now')", "case when f then t else 'today' end"):
        assert words(text, gives_time=True)
    assert words("if(t = 'now', '2013-01-01', '2014-01-01')", gives_time=True) == []


def test_in_a_query_each_part_is_looked_at() -> None:
    assert words("SELECT day, 'now' AS x FROM f WHERE f.day > 'yesterday' AND t = 'today'") == ["yesterday"]
    assert words("WITH x AS (SELECT DATE'tomorrow' AS d FROM f) SELECT d FROM x") == ["tomorrow"]
    assert words("SELECT n FROM f WHERE (SELECT max(at) FROM f) < 'now'") == ["now"]


def example(given: str, wanted: str, **types: str) -> CounterExample | None:
    terms = [term_of(text, lambda parts: ".".join(("t", *parts))) for text in (given, wanted)]
    assert terms[0] is not None
    assert terms[1] is not None
    return counter_example(terms[0], terms[1], {f"t.{name}": kind for name, kind in types.items()})


@pytest.mark.parametrize(
    ("given", "wanted", "kind"),
    [
        ("date_add(date_sub(x, 1), 1)", "x", "date"),
        ("x + interval 1 day", "date_add(x, 1)", "date"),
        ("timestamp(x)", "x", "date"),
        ("to_date(x)", "x", ""),
        ("date_trunc('quarter', x)", "trunc(date_trunc('month', x), 'Q')", "timestamp"),
        ("date_trunc('week', x)", "date_sub(to_date(x), dayofweek(date_sub(to_date(x), 1)) - 1)", "timestamp"),
        ("last_day(x)", "date_sub(add_months(trunc(x, 'MM'), 1), 1)", "timestamp"),
        ("x + x", "2 * x", "decimal(10,2)"),
        ("'2'", "2 + 0 * x", "int"),
        ("x", "to_date(x)", "string"),
        ("lower(x)", "upper(x)", "string"),
        ("date_add(x, 1)", "x", "array<date>"),
        ("x > 1", "'true'", "int"),
        ("x + interval 1 fortnight", "x", "date"),
        ("x", "y", "date"),
    ],
)
def test_what_may_be_the_same_has_no_counter_example(given: str, wanted: str, kind: str) -> None:
    assert example(given, wanted, **{"x": kind} if kind else {}) is None


def test_a_column_without_a_type_has_an_example_of_each_type() -> None:
    assert example("x + interval 1 day", "x")
    assert example("1", "x")
