"""Gold: compute measures per group over joined silver tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.contracts.spec.table_spec import GoldSpec


def aggregate(sources: Mapping[str, DataFrame], spec: GoldSpec, touched: Sequence[str | None] | None) -> DataFrame:
    """Compute the groups of a gold table.

    Args:
        sources: alias -> all rows of that source, at one version.
        spec: the joins, groups and measures.
        touched: values of `refresh_by` as text; only their groups are computed. None computes all groups.

    Returns:
        The columns of `group_by`, then the columns of `measures`.
    """
    frames = {}
    for alias, df in sources.items():
        condition = spec.sources[alias].where
        rows = df.where(condition) if condition else df
        if touched is not None:
            rows = rows.where(is_touched(F.expr(spec.refresh_from[alias]), touched))
        frames[alias] = rows.alias(alias)
    first, *others = spec.sources
    joined = frames[first]
    for alias in others:
        source = spec.sources[alias]
        joined = joined.join(frames[alias], F.expr(source.on or "true"), source.join or "inner")
    groups = [F.expr(expression).alias(name) for name, expression in spec.group_by.items()]
    measures = [F.expr(expression).alias(name) for name, expression in spec.measures.items()]
    grouped = joined.groupBy(*groups).agg(*measures)
    return grouped if touched is None else grouped.where(is_touched(F.col(spec.refresh_by or ""), touched))


def is_touched(value: Column, touched: Sequence[str | None]) -> Column:
    """Return true where `value`, as text, is one of `touched`; null is a value like any other."""
    texts = [text for text in touched if text is not None]
    matches = [*([value.isin(texts)] if texts else []), *([value.isNull()] if None in touched else [])]
    return reduce(lambda a, b: a | b, matches) if matches else F.lit(False)
