"""Spark puts `${env:NAME}` of an SQL text, also of a value in quotes, in by itself; a session of ours must not."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.transforms.silver.changes import within


@pytest.mark.parametrize("text", ["${env:PATH}", "${system:user.name}", "${spark:spark.app.name}", "${hivevar:x}"])
def test_text_that_looks_like_a_variable_stays_text(spark: SparkSession, text: str) -> None:
    frame = spark.createDataFrame([(text,)], "key string")
    assert frame.select(F.expr(f"'{text}'")).collect() == [(text,)]
    assert spark.sql(f"SELECT '{text}'").collect() == [(text,)]
    assert frame.where(within({"key": "string"}, {"min_key": text, "max_key": text})).count() == 1, "a key like others"
