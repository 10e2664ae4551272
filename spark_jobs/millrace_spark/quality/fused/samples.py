"""Samples of failing values: one query collects a few values for every failed rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from millrace_spark.quality.fused.groups import grouped, is_repeated
from millrace_spark.quality.fused.one_pass import collect_together
from millrace_spark.quality.fused.other_tables import is_missing, with_existence
from millrace_spark.quality.fused.rule import Samples

_PARTS = 8
"""The number of parts into which hashes divide the values; the least value of each part is shown. Unlike a list, that
takes no more memory where millions fail, and does not depend on the order of the rows."""


def collect_samples(df: DataFrame, samples: Mapping[int, Samples]) -> dict[int, list[Any]]:
    """Return different failing values of each rule, including the least and the greatest.

    Args:
        df: the version.
        samples: number of a rule -> the samples that it shows.
    """
    of_rows = [
        sample_values(rule.value, rule.failing).alias(str(number))
        for number, rule in samples.items()
        if rule.failing is not None
    ]
    of_groups = [
        grouped(df, rule.group).agg(sample_values(rule.value, is_repeated(rule.group)).alias(str(number)))
        for number, rule in samples.items()
        if rule.group
    ]
    of_references = [
        with_existence(df, rule.reference).agg(sample_values(rule.value, is_missing(rule.reference)).alias(str(number)))
        for number, rule in samples.items()
        if rule.reference
    ]
    values = collect_together([*([df.agg(*of_rows)] if of_rows else []), *of_groups, *of_references])
    return {
        number: [plain_value(value, rule) for value in values.get(str(number), ())] for number, rule in samples.items()
    }


def sample_values(value: Column, failing: Column) -> Column:
    """Return an aggregate: an array of different values of failing rows."""
    part = F.pmod(F.xxhash64(value), F.lit(_PARTS))
    of_parts = [F.min(F.when(failing & (part == number), value)) for number in range(_PARTS)]
    every = F.array(F.min(F.when(failing, value)), F.max(F.when(failing, value)), *of_parts)
    return F.array_distinct(F.array_compact(every))


def plain_value(value: Any, samples: Samples) -> Any:
    """Return a combination as a dict by column, a pair as a list of two values, any other value unchanged."""
    if not isinstance(value, Row):
        return value
    return value.asDict() if samples.group or samples.reference else list(value)
