"""Some of the values that fail: of all failed rules together in one query, which holds a few values of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from spark_jobs.quality.fused.one_pass import collected_together, grouped, is_repeated
from spark_jobs.quality.fused.rule import Sampled

_PARTS = 8
"""Values are dealt into so many parts by their hash, and the least of each is shown: unlike any list of them, that
takes no more memory where millions fail, and is the same however the rows lie."""


def samples(df: DataFrame, sampled: Mapping[int, Sampled]) -> dict[int, list[Any]]:
    """Different failing values of each rule, the least and the greatest among them.

    Args:
        df: the version.
        sampled: place of a rule -> what it shows.
    """
    of_rows = [(place, one.value, one.failing) for place, one in sampled.items()]
    shown = [some_of(value, failing).alias(str(place)) for place, value, failing in of_rows if failing is not None]
    of_groups = [
        grouped(df, one.group).agg(some_of(one.value, is_repeated(one.group)).alias(str(place)))
        for place, one in sampled.items()
        if one.group
    ]
    found = collected_together([*([df.agg(*shown)] if shown else []), *of_groups])
    return {place: [plain(value, one) for value in found.get(str(place), ())] for place, one in sampled.items()}


def some_of(value: Column, failing: Column) -> Column:
    """Different values of failing rows as an array: an aggregate."""
    part = F.pmod(F.xxhash64(value), F.lit(_PARTS))
    of_parts = [F.min(F.when(failing & (part == number), value)) for number in range(_PARTS)]
    every = F.array(F.min(F.when(failing, value)), F.max(F.when(failing, value)), *of_parts)
    return F.array_distinct(F.array_compact(every))


def plain(value: Any, of: Sampled) -> Any:
    """A combination with its columns, a pair as two values, anything else as it is."""
    if not isinstance(value, Row):
        return value
    return value.asDict() if of.group else list(value)
