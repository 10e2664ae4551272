"""Spark puts `${env:NAME}` of an SQL text, also of a value in quotes, in by itself; a session of ours must not."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from millrace_spark.transforms.silver.changes import within
from tests.support.spark.shared_server import GENERATED_CODE

SESSION = GENERATED_CODE

TEXTS = ["${env:PATH}", "${system:user.name}", "${spark:spark.app.name}", "${hivevar:x}"]


def test_text_that_looks_like_a_variable_stays_text(spark: SparkSession) -> None:
    frame, quoted = spark.createDataFrame([(text,) for text in TEXTS], "key string"), [f"'{text}'" for text in TEXTS]
    assert frame.limit(1).select([F.expr(text) for text in quoted]).collect() == [tuple(TEXTS)]
    assert spark.sql(f"SELECT {', '.join(quoted)}").collect() == [tuple(TEXTS)]
    for text in TEXTS:
        is_within = within({"key": "string"}, {"min_key": text, "max_key": text})
        assert frame.where(is_within).collect() == [(text,)], "a key like others"
