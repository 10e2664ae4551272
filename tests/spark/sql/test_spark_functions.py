"""What `lakehouse check` knows of Spark's SQL, held against Spark itself."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.sql.spark_functions import AGGREGATES, FUNCTIONS, WITHOUT_PARENTHESES
from tests.unit.millrace.specs.checks.test_sql import VALID

SESSION = {"spark.sql.connect.enrichError.enabled": "false"}
"""The name of an error is enough for most functions; its details would take a further request each."""

FRAME = "order_id string, amount int, day date, event_at timestamp, event_seq int, _rescued string, _source_file string"


def spark_functions(spark: SparkSession) -> list[str]:
    """The names of the functions that Spark has, without its operators and ours."""
    names = [row[0] for row in spark.sql("SHOW ALL FUNCTIONS").collect()]
    assert len(names) > 400
    return [name for name in names if re.fullmatch(r"\w+", name) and not name.startswith("millrace_")]


def test_the_list_of_functions_is_that_of_spark(spark: SparkSession) -> None:
    """After an upgrade of Spark: `include/millrace/sql/spark_functions.py` needs the names that differ."""
    assert (FUNCTIONS ^ set(spark_functions(spark))) - {"case"} == frozenset()


def test_each_aggregate_of_one_argument_is_one_for_spark(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], "a int, b int")
    judged = {
        name: _gives_one_value(frame, name) for name in sorted(FUNCTIONS) if name not in {"grouping", "grouping_id"}
    }
    assert len([name for name, is_one in judged.items() if is_one]) > 30
    assert [name for name, is_one in judged.items() if is_one and name not in AGGREGATES] == []
    assert [name for name, is_one in judged.items() if is_one is False and name in AGGREGATES] == []


def _gives_one_value(frame: DataFrame, name: str) -> bool | None:
    """Whether `name(a)` is an aggregate; None where it takes other arguments."""
    try:
        frame.select(F.expr(f"{name}(a)"), "b").schema  # noqa: B018
    except PySparkException as error:
        return True if (error.getCondition() or "").startswith("MISSING_GROUP_BY") else None
    return False


def test_what_is_not_refused_is_what_spark_understands(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], FRAME)
    refused = {}
    for sql in VALID:
        try:
            assert frame.select(F.expr(sql).alias("x")).schema["x"].name == "x"
        except PySparkException as error:
            refused[sql] = str(error).splitlines()[0]
    assert refused == {}, "a valid expression must be one"


def test_what_looks_like_a_column_and_is_none(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], FRAME)
    for name in WITHOUT_PARENTHESES - {"grouping__id"}:
        assert len(frame.select(F.expr(name)).columns) == 1
