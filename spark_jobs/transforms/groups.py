"""Gold: measures by group, over joined silver tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.contracts.spec.table_spec import GoldSource, GoldSpec


def aggregate(sources: Mapping[str, DataFrame], spec: GoldSpec, touched: Sequence[str | None] | None) -> DataFrame:
    """The groups of a gold table.

    Args:
        sources: alias -> all rows of that source, at one version.
        spec: says how they are joined, grouped and measured.
        touched: values of `refresh_by` as text; only their groups are computed. None computes all.

    Returns:
        The columns of `group_by`, then those of `measures`.
    """
    groups = [F.expr(expression).alias(name) for name, expression in spec.group_by.items()]
    measures = [F.expr(expression).alias(name) for name, expression in spec.measures.items()]
    grouped = _joined(sources, spec, touched).groupBy(*groups).agg(*measures)
    return grouped if touched is None else grouped.where(is_touched(F.col(spec.refresh_by), touched))


def is_touched(value: Column, touched: Sequence[str | None]) -> Column:
    """Whether `value`, as text, is one of `touched`; null is a value like any other."""
    return F.expr("false") if not touched else reduce(lambda a, b: a | b, _matches(value, touched))


def _joined(sources: Mapping[str, DataFrame], spec: GoldSpec, touched: Sequence[str | None] | None) -> DataFrame:
    first, *others = spec.sources
    frames = {
        alias: _narrowed(df, spec.sources[alias], spec.refresh_from[alias], touched).alias(alias)
        for alias, df in sources.items()
    }
    return reduce(lambda left, alias: _join(left, frames[alias], spec.sources[alias]), others, frames[first])


def _matches(value: Column, touched: Sequence[str | None]) -> list[Column]:
    known = [text for text in touched if text is not None]
    missing = [value.isNull()] if None in touched else []
    return [*([value.isin(known)] if known else []), *missing]


def _narrowed(df: DataFrame, source: GoldSource, refresh: str, touched: Sequence[str | None] | None) -> DataFrame:
    rows = df.where(source.where) if source.where else df
    return rows if touched is None else rows.where(is_touched(F.expr(refresh), touched))


def _join(left: DataFrame, right: DataFrame, source: GoldSource) -> DataFrame:
    return left.join(right, F.expr(source.on or "true"), source.join or "inner")
