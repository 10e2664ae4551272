"""A text is the time of the run where Spark converts it to a date or a timestamp, and a text elsewhere."""

from __future__ import annotations

import sqlglot

from millrace.sql.clock_words import clock_words

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
