"""What a person may have Spark work out over single rows, and what is known of an expression by its text alone."""

from __future__ import annotations

import pytest

from millrace.errors import BadInputError
from millrace.sql.checked_expression import require_no_queries
from millrace.sql.closed_expression import require_closed
from millrace.sql.expression import expression_of

HOSTILE = [
    "reflect('java.lang.System', 'getenv', 'AWS_SECRET_ACCESS_KEY')",
    "(select max(value) from text.`/etc/passwd`)",
    "(from text.`/etc/passwd` |> select value)",
    "(table secrets)",
    "a in (select value from text.`/etc/passwd`)",
    "try_reflect('java.lang.System', 'getenv', 'X')",
    "ReFlEcT ('java.lang.System', 'getenv', 'X')",
    "reflect\n(\n'java.lang.System', 'getenv', 'X')",
    "reflect /* why not */ ('java.lang.System', 'getenv', 'X')",
    "reflect -- why not\n('java.lang.System', 'getenv', 'X')",
    "`reflect`('java.lang.System', 'getenv', 'X')",
    "system.builtin.reflect('java.lang.System', 'getenv', 'X')",
    "system . builtin . `reflect` ('java.lang.System', 'getenv', 'X')",
    "identifier('reflect')('java.lang.System', 'getenv', 'X')",
    "identifier('ref' || 'lect')('java.lang.System')",
    "concat('a', upper(reflect('java.lang.System', 'getenv', 'X')))",
    "'a\\' || reflect(\\'java.lang.System\\', \\'getenv\\') || \\''",
    "'a\\'' || reflect('java.lang.System', 'getenv', 'X') || '\\''",
    'concat("a\\", reflect("java.lang.System")) || "")',
    "r'\\' || reflect('java.lang.System', 'getenv', 'X') || r'\\'",
    "'a' /* ' */ || reflect('java.lang.System') /* ' */",
    "transform(array(1), x -> reflect('java.lang.System', 'getenv', 'X'))",
    "transform(array(1), x -> x)",
    "aggregate(array(1), 0, (a, b) -> a)",
    "explode(array(1, 2))",
    "sum(a)",
    "percentile_cont(0.5) within group (order by a)",
    "*",
    "a as b",
    "a, b",
    "1; drop table a",
    ":secret",
    "?",
    "${spark.hadoop.fs.s3a.secret.key}",
    "'${env:AWS_SECRET_ACCESS_KEY}'",
    "{{ var.value.secret }}",
    "@@version",
    "current_user",
    "input_file_name()",
    "raise_error('a')",
    "uuid()",
    "from_json(a, 'b int')",
    "my_udf(a)",
    "f(a => 1)",
    "a:b",
    "a::int",
    "a\u2028(1)",
    "\uff52eflect('a')",
    "reflect\u00a0('a')",
    "abs(",
    "",
    "'unclosed",
    "`unclosed",
]

HARMLESS = [
    "abs(amount)",
    "-10 * amount",
    "0",
    "null",
    "date '2013-01-01'",
    "timestamp '2013-01-01 00:00:00'",
    "case when amount < 0 then -amount else amount end",
    "case status when 'a' then 'b' end",
    "cast(replace(amount, ',', '.') as decimal(10, 2))",
    "try_cast(amount as int)",
    "coalesce(nullif(trim(name), ''), 'unknown')",
    "to_date(day, 'dd.MM.yyyy')",
    "amount between 1 and (2 + 3)",
    "status in ('a', 'b') and not (amount <=> 3 or amount is null)",
    "regexp_replace(name, '[0-9]+', '')",
    "name || ' -- /* select reflect(x) from y */ -> ;'",
    "concat(name, 'it''s')",
    "`select` + `from`",
    "get_json_object(_rescued, '$.colour')",
    "day + interval 1 day",
    "if(amount > 1.5e3, 1L, 2)",
    "orders.amount div 2 % 3",
]


@pytest.mark.parametrize("sql", HOSTILE)
def test_what_reaches_beyond_one_row_is_refused(sql: str) -> None:
    with pytest.raises(BadInputError, match="cannot be set to"):
        require_closed("amount", sql)


def test_what_works_out_a_value_of_one_row_goes_through() -> None:
    for sql in HARMLESS:
        require_closed("amount", sql)


def test_a_slip_is_told_with_the_word_that_was_meant() -> None:
    with pytest.raises(BadInputError, match="the function to_dat is not for single rows, did you mean 'to_date'"):
        require_closed("day", "to_dat(day)")


QUERIES = [
    "amount > (select count(*) from delta.`/lake/silver/customers`)",
    "o.id in (SELECT id FROM silver.customers)",
    "exists (table silver.customers)",
    "o.id in (values (1), (2))",
    "amount > (from delta.`/lake/silver/customers` |> aggregate count(*))",
    "amount > ((with c as (table silver.customers) select 1))",
    "array((select 1))[0]",
]
NO_QUERIES = [
    "extract(day from o.at) > 1",
    "trim(both from o.id) = 'select'",
    "o.`select` > 1",
    "o.select > o.values",
    "sum(values)",
    "substring(id from 2 for 1)",
    "a is distinct from b",
]


@pytest.mark.parametrize("text", QUERIES)
def test_the_driver_refuses_an_expression_with_a_query(text: str) -> None:
    with pytest.raises(BadInputError, match=r"^gold\.x: the expression .* is not run: a query within an expression"):
        require_no_queries("gold.x", ["o.day", text])


def test_the_driver_evaluates_expressions_over_one_row() -> None:
    require_no_queries("gold.x", NO_QUERIES)


OF_ITS_ROW = [
    "amount >= 0 OR kind = 'refund'", "extract(year from day) > 2000", "a IS DISTINCT FROM b",
    "name RLIKE '^[a-z]+$' AND s.f IN (1, 2)", "size(filter(xs, x -> x > 1)) > 0", "`current_date` > 1",
    "unix_timestamp(at) > 1",
]  # fmt: skip
OF_MORE_THAN_ITS_ROW = [
    "day <= current_date", "at < now()", "unix_timestamp( ) > 1", "day < 'today'", "at < TIMESTAMP'now'", "uuid() = a",
    "rand() < share", "session_user = name", "input_file_name() = name", "my_udf(a)", "own.functions.f(a)",
    "x IN (SELECT 1)", "EXISTS (TABLE other)", "row_number() OVER (ORDER BY a) > 1", "a = 'not closed",
]  # fmt: skip


def test_a_value_follows_from_its_row_or_may_depend_on_more() -> None:
    assert [text for text in OF_ITS_ROW if not expression_of(text).follows_from_row] == []
    assert [text for text in OF_MORE_THAN_ITS_ROW if expression_of(text).follows_from_row] == []
