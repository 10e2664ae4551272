"""The functions of Spark whose value is as large as an argument says are all bounded."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from millrace.sql.closed_expression import FUNCTIONS as CLOSED
from millrace.sql.growth import GROWING
from millrace.sql.query_functions import REFUSED
from millrace.sql.spark_functions import FUNCTIONS

SESSION = {"spark.sql.connect.enrichError.enabled": "false"}
SIZE = 6000
"""More than the 4 kB of `bitmap_construct_agg`, as text."""
OTHERS = ("'ab'", "2", "array(1, 2)")


def calls(name: str, number: int) -> Iterator[str]:
    """Yield calls of a function with a number of arguments, one of which is a size."""
    for place, others in product(range(number), product(OTHERS, repeat=number - 1)):
        yield f"{name}({', '.join((*others[:place], str(SIZE), *others[place:]))})"
    if number > 1:
        yield f"{name}('%{SIZE}d'{', 2' * (number - 1)})"


def size_of(spark: SparkSession, call: str) -> int:
    """Return the length of the value of a call, as JSON, or the number of its rows."""
    rows = spark.sql(f"SELECT octet_length(to_json(struct(x))) AS size FROM (SELECT {call} AS x)").collect()
    return max(len(rows), *(row.size or 0 for row in rows), 0)


def large_call(spark: SparkSession, name: str) -> str | None:
    """Return a call of a function whose value is as large as an argument says; None if there is none."""
    for number in (1, 2, 3):
        for call in calls(name, number):
            try:
                if size_of(spark, call) >= SIZE:
                    return call
            except PySparkException as error:
                if (error.getCondition() or "").startswith("WRONG_NUM_ARGS"):
                    break  # the function takes another number of arguments
    return None


def test_what_is_allowed_in_a_fix_is_a_function_of_spark() -> None:
    assert FUNCTIONS | {"try_cast"} >= CLOSED
    assert GROWING <= FUNCTIONS


@pytest.mark.slow
def test_a_function_whose_value_is_as_large_as_an_argument_says_is_bounded(spark: SparkSession) -> None:
    """After an upgrade of Spark: a function that this finds belongs into `include/millrace/sql/growth.py`."""
    names = sorted(FUNCTIONS - GROWING - REFUSED.keys())
    assert len(names) > 400
    assert [large_call(spark, name) for name in ("space", "array_insert", "printf")] == [
        f"space({SIZE})",
        f"array_insert(array(1, 2), {SIZE}, 2)",
        f"printf('%{SIZE}d', 2)",
    ]
    found = {name: call for name in names if (call := large_call(spark, name))}
    assert found == {}
