"""What the trace makes of an expression has its values and types on Spark, or the table is computed whole."""

from __future__ import annotations

import re
import sys
from collections import Counter
from itertools import product

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from millrace.sql.query.refresh import has_other_value
from millrace.sql.query.select_query import query_of
from millrace.sql.query.trace import trace
from millrace_spark.layers.gold.query import read_otherwise

COLUMNS = {
    "id": "int", "flags": "int", "code": "int", "name": "string", "grain": "string", "day": "date", "at": "timestamp",
    "amount": "double", "price": "decimal(10,2)", "is_new": "boolean", "doc": "string",
}  # fmt: skip
ROWS = """
    (1, 5, 3, 'O\\'Hare', 'month', '2024-05-15', '2024-12-30 23:59:59.5', 1000, 1.10, true, '{"a": 1}'),
    (2, 12, 1, 'a"b', 'quarter', '2024-12-30', '2024-02-29 12:00:00', 0.5, -2.00, false, '{"a": "x"}'),
    (3, 255, 2, '', 'day', '2023-01-01', '1969-12-31 01:02:03', 7, 0.00, true, '[]'),
    (4, 8, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
"""
OPERATORS = (
    "+", "-", "*", "/", "%", "div", "&", "|", "^", "<<", ">>", ">>>", "||", "=", "==", "<>", "!=", "<", "<=", ">", ">=",
    "<=>", "and", "or",
)  # fmt: skip
TRACED = (
    "to_char(day, 'yyyy-MM')", "name = 'O''Hare'", 'name = "a""b"', "concat('''', name)", "trunc(day, grain)",
    "date_trunc(grain, at)", "floor(log10(amount))", "flags | 2 & 4", "flags & 1 << 3", "id || flags + 1",
    "date_format(day, 'yyyy''W''')", "date_format(day, 'MMM')", "trunc(day, 'q')", "flags ^ code & 3",
    "unix_date(day)", "to_date(date_format(day, 'yyyy-MM'), 'yyyy-MM')", "instr(name, 'H')", "name rlike '^O\\\\W'",
    "day + interval 2 days", "date_sub(day, id + 1)", "date_add(day, id * -1)",
    "cast(variant_get(try_parse_json(doc), '$.a', 'string') as string)",
)  # fmt: skip
WHOLE = ("cast(-1::string as int) + id",)


def source(spark: SparkSession) -> None:
    typed = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in COLUMNS.items())
    spark.sql(f"SELECT {typed} FROM VALUES {ROWS} AS v({', '.join(COLUMNS)})").createOrReplaceTempView("f")


def traced(spark: SparkSession, text: str) -> tuple[str, str]:
    """Return what the trace makes of an expression, and else why its table is computed whole."""
    query = f"SELECT {text} AS k, count(*) AS n FROM f GROUP BY 1"
    if refusal := next(iter(query_of(query).refusals(["f"])), None):
        return "", f"refused: {refusal.message}"
    found = trace(query, "k", {"f": tuple(COLUMNS)})
    if found.reason:
        return "", f"trace: {found.reason}"
    other = read_otherwise(spark, query)
    return found.expressions["f"][0], other and f"proof: {other}"


def test_expressions_that_were_stale_are_traced_and_keep_values_and_types(spark: SparkSession) -> None:
    source(spark)
    found = {text: traced(spark, text) for text in TRACED}
    assert {text: why for text, (_, why) in found.items() if why} == {}
    rows = spark.sql(
        f"SELECT {', '.join(f'struct({text} x), struct({own} x)' for text, (own, _) in found.items())} FROM f"
    )
    kinds = [field.dataType.simpleString() for field in rows.schema.fields]
    assert kinds[::2] == kinds[1::2]
    values = rows.collect()
    assert len(values) == 4
    assert [row[::2] for row in values] == [row[1::2] for row in values]
    assert all(traced(spark, text)[1] for text in WHOLE), "what sqlglot misreads is computed whole"


EQUAL = (("name = 'O''Hare'", "NAME = 'O\\'Hare'"), ("day", "(day)"), ("concat(name, 'a')", "CONCAT(`Name`, 'a')"))
DIFFERENT = (
    ("to_char(day, 'yyyy-MM')", "to_char(day, 'yyyy-MM-dd')"), ("date_format(day, 'yyyy')", "date_format(day, 'YYYY')"),
    ("to_date(date_format(day, 'yyyy'), 'yyyy')", "to_date(date_format(day, 'yyyy'), 'uuuu')"),
    ("log10(amount)", "log(10, amount)"), ("trunc(day, 'quarter')", "trunc(day, 'q')"),
    ("flags & 1 << 3", "(flags & 1) << 3"), ("flags | 2 & 4", "(flags | 2) & 4"), ("'O''Hare'", "concat('O', 'Hare')"),
    ("id || flags + 1", "id || (flags + 1)"), ("unix_date(day)", "cast(unix_date(day) as bigint)"),
    ("from_unixtime(id, 'yyyy')", "from_unixtime(id, 'YYYY')"), ("name", "'name'"), ("amount + 1", "amount + 1.0"),
    ("-1::string", "(-1)::string"),
    ("to_timestamp('2024-12-30', 'yyyy-MM-dd')", "to_timestamp('2024-12-30', 'yyyy-dd-MM')"),
)  # fmt: skip


def test_expressions_are_called_equal_only_if_they_have_the_same_values(spark: SparkSession) -> None:
    def are_called_equal(one: str, other: str) -> bool:
        found = trace(f"SELECT {one} AS k, count(*) AS n FROM f GROUP BY 1", "k", {"f": tuple(COLUMNS)})
        return not found.reason and not has_other_value(found, "f", other)

    source(spark)
    assert [pair for pair in EQUAL if not are_called_equal(*pair)] == []
    assert [pair for pair in DIFFERENT if are_called_equal(*pair) or are_called_equal(*pair[::-1])] == []
    rows = spark.sql(f"SELECT {', '.join(f'(({one}) <=> ({other}))' for one, other in EQUAL)} FROM f").collect()
    assert [len(rows), all(value for row in rows for value in row)] == [4, True]


def examples(spark: SparkSession) -> dict[str, list[str]]:
    """Return function -> the expressions in the examples of its documentation, as values of a row of the source."""
    found: dict[str, list[str]] = {}
    for (name,) in spark.sql("SHOW FUNCTIONS").collect():
        if re.fullmatch(r"\w+", name):
            text = "\n".join(row[0] for row in spark.sql(f"DESCRIBE FUNCTION EXTENDED {name}").collect())
            selects = re.findall(r"> SELECT (.*?);\s*$", text, re.MULTILINE)
            found[name] = [f"named_struct('i', f.id, 'v', {each})" for each in selects]
    return found


@pytest.mark.faults
def test_every_function_and_every_pair_of_operators_keeps_values_and_types_or_is_computed_whole(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    source(spark)
    texts = [each for of_name in examples(spark).values() for each in of_name]
    pairs = list(product(OPERATORS, repeat=2))
    texts += [f"id {one} flags {other} code" for one, other in pairs]
    texts += [f"is_new {one} id {other} flags" for one, other in pairs]
    counts, differing = Counter[str](), []
    for text in texts:
        try:
            spark.sql(f"SELECT {text} AS k FROM f GROUP BY 1").schema  # noqa: B018
        except PySparkException:
            counts["no value of a row"] += 1
            continue
        own, why = traced(spark, text)
        if why:
            counts[f"not traced: {why.partition(':')[0]}"] += 1
            continue
        both = spark.sql(f"SELECT {text} AS one, {own} AS other FROM f")
        try:
            values = [(repr(row.one), repr(row.other)) for row in both.collect()]
        except PySparkException:
            counts["fails"] += 1
            continue
        counts["traced"] += 1
        kinds = {field.dataType.simpleString() for field in both.schema.fields}
        if any(one != other for one, other in values) or len(kinds) > 1:
            differing.append((text, own, values[0]))
    with capsys.disabled():
        sys.stdout.write(f"\n{len(texts)} expressions: {dict(counts)}\n")
    assert counts["traced"] > 900
    assert differing == []
