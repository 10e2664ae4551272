"""What a person may have Spark work out over single rows, and everything else that somebody might try."""

from __future__ import annotations

import pytest

from include.errors import BadInputError
from include.sql.closed_expression import require_closed

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


@pytest.mark.parametrize("sql", HARMLESS)
def test_what_works_out_a_value_of_one_row_goes_through(sql: str) -> None:
    require_closed("amount", sql)


def test_a_slip_is_told_with_the_word_that_was_meant() -> None:
    with pytest.raises(BadInputError, match="the function to_dat is not for single rows, did you mean 'to_date'"):
        require_closed("day", "to_dat(day)")
