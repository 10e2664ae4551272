"""The values whose number of rows changed: their query, and how they are found in a version by the bits of hashes."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from millrace_spark.quality.fused.changed_values import MOST_VALUES, changed_values_frame, has_bit_of
from millrace_spark.quality.fused.one_pass import GATE_CONF
from millrace_spark.runtime.session import own_session
from tests.support.spark.shared_server import GENERATED_CODE


@pytest.mark.usefixtures("spark")
def test_spark_need_not_compile_the_query_anew_for_every_gate(capsys: pytest.CaptureFixture[str]) -> None:
    def generated_code() -> list[str]:
        with own_session({**GATE_CONF, **GENERATED_CODE}) as session:
            feed = session.range(2 * MOST_VALUES).selectExpr("id", "'insert' AS _change_type")
            changed_values_frame(feed, ("id",), 0).explain("codegen")
        return [line for line in capsys.readouterr().out.splitlines() if line.startswith("/* ")]

    first = generated_code()
    assert len(first) > 100
    assert generated_code() == first


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
