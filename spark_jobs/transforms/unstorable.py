"""Empty texts in partition columns: Delta stores them as null, which is another value."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.errors import BadInputError
from spark_jobs.transforms.refusals import refusal_when

_ERROR_PREFIX = "an empty text in the partition column "
_ERROR = re.compile(rf"{_ERROR_PREFIX}(\w+)")


def empty_partition_texts(columns: Iterable[str]) -> list[Column]:
    """Return for each of these partition columns, which are texts, the refusal of a row in which it is empty."""
    reason = "{} is an empty text, which Delta stores as null in a partition column"
    rule = "expect_column_values_to_not_be_null"
    return [refusal_when(F.col(name) == "", rule, reason.format(name)) for name in columns]


def without_empty_partition_texts(rows: DataFrame, partitioned_by: Iterable[str]) -> DataFrame:
    """Return the rows, of which a write fails where one has an empty text in a partition column."""
    for name in partitioned_by:
        if rows.schema[name].dataType.simpleString() == "string":
            error = F.raise_error(F.lit(f"{_ERROR_PREFIX}{name}")).cast("string")
            rows = rows.withColumn(name, F.when(F.col(name) == "", error).otherwise(F.col(name)))
    return rows


def empty_partition_text_error(error: BaseException, table: str) -> BadInputError | None:
    """Return the error to report of a write that an empty text in a partition column failed; None for another error.

    >>> print(empty_partition_text_error(RuntimeError("an empty text in the partition column city SQLSTATE"), "gold.a"))
    gold.a: Delta stores an empty text as null in the partition column city, so that it would be another row
    Write nullif(..., '') where the spec states city, or leave city out of `partitioned_by`.
    """
    if not (match := _ERROR.search(str(error))):
        return None
    return BadInputError(
        f"{table}: Delta stores an empty text as null in the partition column {match[1]}, so that it would be "
        "another row",
        f"Write nullif(..., '') where the spec states {match[1]}, or leave {match[1]} out of `partitioned_by`.",
    )
