"""The operations of a form, and the expressions of the command line, as Spark works them out."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from millrace.contracts.job.column_fix import ColumnFix
from millrace.sql.closed_expression import FUNCTIONS
from millrace_spark.transforms.column_fixes import fixed_value, loses_value
from tests.spark.sql.test_spark_functions import spark_functions
from tests.unit.millrace.sql.test_closed_expression import HARMLESS

ROW = {"name": " Ann, \\ 'x' ", "day": "31.12.2013", "other": "o", "none": None}
EVIL = "reflect('java.lang.System', 'getenv', 'HOME')"


OPERATIONS: list[tuple[str, dict[str, Any], str | None]] = [
    ("name", {"how": "set", "value": EVIL}, EVIL),
    ("name", {"how": "set", "value": "' || name || '\\"}, "' || name || '\\"),
    ("name", {"how": "set to null"}, None),
    ("name", {"how": "copy", "value": "other"}, "o"),
    ("name", {"how": "trim"}, "Ann, \\ 'x'"),
    ("name", {"how": "upper"}, " ANN, \\ 'X' "),
    ("name", {"how": "lower"}, " ann, \\ 'x' "),
    ("name", {"how": "replace", "value": "\\ 'x'", "by": "' || 'y"}, " Ann, ' || 'y "),
    ("name", {"how": "replace", "value": ".*"}, ROW["name"]),
    ("name", {"how": "map", "values": {ROW["name"]: EVIL, "b": "c"}}, EVIL),
    ("name", {"how": "map", "values": {ROW["name"]: None}}, None),
    ("other", {"how": "map", "values": {"a": "b"}}, "o"),
    ("none", {"how": "map", "values": {"a": "b"}}, None),
    ("day", {"how": "parse date", "value": "dd.MM.yyyy"}, "2013-12-31"),
    ("none", {"how": "parse date", "value": "dd.MM.yyyy"}, None),
]


def test_each_operation_is_worked_out_from_literals(spark: SparkSession) -> None:
    frame = spark.createDataFrame([ROW], "name string, day string, other string, none string")
    fixes = [(column, TypeAdapter(ColumnFix).validate_python(fix)) for column, fix, _ in OPERATIONS]
    [values] = frame.select(*(fixed_value(*fix).cast("string") for fix in fixes)).collect()
    assert [*values] == [value for *_, value in OPERATIONS]
    [lost] = frame.select(*(loses_value(*fix) for fix in fixes)).collect()
    assert {*lost} == {False}


def test_a_value_that_the_pattern_does_not_fit_is_lost_and_not_null(spark: SparkSession) -> None:
    fix = TypeAdapter(ColumnFix).validate_python({"how": "parse date", "value": "yyyy-MM-dd HH:mm"})
    days = [("2013-12-31 23:59",), ("soon",), (None,)]
    frame = spark.createDataFrame(days, "day string").select(
        fixed_value("day", fix).cast("string"), loses_value("day", fix)
    )
    assert frame.collect() == [("2013-12-31 23:59:00", False), (None, True), (None, False)]


def test_the_functions_of_the_command_line_are_spark_s(spark: SparkSession) -> None:
    assert frozenset(spark_functions(spark)) >= FUNCTIONS - {"cast", "try_cast"}, "those are syntax"


def test_harmless_expressions_are_worked_out(spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT -1.5 amount, 'a' status, 'n' name, '31.12.2013' day, 'r' _rescued, 1 `select`, 2 `from` FROM range(1)"
    ).alias("orders")
    with_date = frame.withColumn("day", F.lit("2013-01-01").cast("date")).alias("orders")
    for rows, of_texts in ((frame, True), (with_date, False)):
        expressions = [F.expr(sql) for sql in HARMLESS if ("to_date" in sql) is of_texts]
        assert len(rows.select(*expressions).collect()) == 1
