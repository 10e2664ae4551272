"""The texts that `lakehouse check` takes for the time of the run are those that Spark converts to a time."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.unit.millrace.sql.test_clock_words import NOT_READING, READING

SESSION = {"spark.sql.debug.maxToStringFields": "1000"}
COLUMNS = {"day": "date", "at": "timestamp", "t": "string", "n": "int", "f": "boolean"}
WORD = re.compile(r"\b(now|today|tomorrow|yesterday)\b", re.I)


def test_spark_converts_what_is_found_and_no_other_text(spark: SparkSession) -> None:
    texts = spark.range(1).select(F.col("id").cast("string").alias("x"))
    frame = texts.select(*(F.col("x").cast(kind).alias(name) for name, kind in COLUMNS.items()))

    def keeping_a_word(asked: list[str]) -> list[str]:
        plans = frame.select(*(F.expr(text).alias(f"x{at}") for at, text in enumerate(asked)))._explain_string(True)
        optimized = re.split(r" AS x\d+#", plans.split("== Optimized")[1].split("== Physical")[0])[:-1]
        return [text for text, plan in zip(asked, optimized, strict=True) if WORD.search(plan)]

    aggregates = [text for text in READING if "max(" in text]
    words = [text for text in NOT_READING if WORD.search(text)]
    assert len(words) > 10
    assert keeping_a_word([*(text for text in READING if text not in aggregates), *words]) == words
    assert keeping_a_word(aggregates) == []
