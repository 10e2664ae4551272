"""Gold groups: which measures Spark computes from another one."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from spark_jobs.transforms.groups import aggregate, unlisted_value
from tests.support.documents.measures import READING_A_RESULT
from tests.support.documents.specs import gold_spec


def test_spark_refuses_a_measure_within_an_aggregate_or_a_window(spark: SparkSession) -> None:
    orders = spark.sql("SELECT date '2013-01-01' AS day, 'a' AS order_id, 1 AS amount")
    for measure in READING_A_RESULT:
        spec = gold_spec(measures={"orders": "count(*)", "m": measure})
        with pytest.raises(AnalysisException, match="LATERAL_COLUMN_ALIAS_IN_"):
            _ = aggregate({"o": orders}, spec, None).columns
    plain = gold_spec(measures={"orders": "count(*)", "m": "orders + sum(o.amount)"})
    assert aggregate({"o": orders}, plain, None).columns == ["day", "orders", "m"]


def test_floats_are_no_values_by_which_groups_are_chosen(spark: SparkSession) -> None:
    """The text 0.1 of a float is no number that equals it: its group stayed as it was."""
    rows = spark.sql("SELECT CAST(0.1 AS FLOAT) AS f, -0.0D AS d, 0.10 AS c, true AS b, X'FF' AS x, 'a' AS s, 1 AS n")
    found = {
        (group, given): unlisted_value(
            {"o": rows},
            gold_spec(
                sources={"o": {"table": "silver.orders"}},
                refresh_by="k",
                refresh_from={"o": given},
                group_by={"k": group},
                measures={"rows": "count(*)"},
            ),
        )
        for group, given in (*((each, each) for each in "fdcbxsn"), ("CAST(f AS STRING)", "f"), ("round(f, 1)", "s"))
    }
    assert found == {
        ("f", "f"): "k is float, by whose values no run can choose rows",
        ("d", "d"): "k is double, by whose values no run can choose rows",
        ("x", "x"): "k is binary, by whose values no run can choose rows",
        ("CAST(f AS STRING)", "f"): "refresh_from.o is float, by whose values no run can choose rows",
        ("round(f, 1)", "s"): "k is float, by whose values no run can choose rows",
        **dict.fromkeys([(each, each) for each in "cbsn"], ""),
    }
