"""The values whose number of rows changed are found in a version by the bits of their hashes."""

from __future__ import annotations

import random

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_jobs.quality.fused.changed_values import has_bit_of


def test_every_hash_is_found_and_few_other_values_are(spark: SparkSession) -> None:
    drawn = random.Random(1)
    edges = [0, -1, 63, 64, 2**63 - 1, -(2**63)]
    hashes = edges + [drawn.randrange(-(2**63), 2**63) for _ in range(1000)]
    others = [drawn.randrange(-(2**63), 2**63) for _ in range(1000)]
    df = spark.createDataFrame([(value,) for value in hashes + others], "value bigint")
    found = {row.value for row in df.where(has_bit_of(F.col("value"), hashes)).collect()}
    assert found >= set(hashes)
    assert 0 < len(found - set(hashes)) < 50
    [[alone]] = spark.createDataFrame([(7,)], "value bigint").select(has_bit_of(F.col("value"), [7])).collect()
    assert alone is True
