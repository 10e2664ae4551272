"""Gold groups: which measures Spark computes from another one."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from spark_jobs.transforms.groups import aggregate
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
