"""Gold: the joined rows of groups, and the groups that a changed row of a lookup affects."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millrace.contracts.spec.table_spec import GoldSpec


def join_sources(sources: Mapping[str, DataFrame], spec: GoldSpec) -> DataFrame:
    """Return the joined rows of the sources that meet their `where`; their columns are named `<alias>.<column>`."""
    return _join(_filtered(sources, spec), spec)


def touched_by_lookup(
    alias: str, changed: DataFrame, sources: Mapping[str, DataFrame], spec: GoldSpec, value: str
) -> DataFrame:
    """Return the values of `refresh_by` (`touched`) of the first source's rows that match changed rows of a lookup.

    A row that matched the lookup before it changed, and has not changed itself, matches the row as it was. A row that
    has changed itself counts as touched anyway, and so does one whose match in an earlier lookup has changed.

    Args:
        alias: the alias of the lookup.
        changed: its changed rows, as they were and as they are.
        sources: alias -> all rows of that source, at one version; only those before the lookup are read.
        spec: the joins.
        value: the value of `refresh_by` that a row of the first source affects, as Spark SQL.
    """
    first, *_ = aliases = list(spec.sources)
    earlier = _filtered({name: sources[name] for name in aliases[: aliases.index(alias)]}, spec)
    earlier[first] = earlier[first].withColumn("_touched", F.expr(value))
    rows = _filtered({alias: changed}, spec)[alias].alias(alias)
    matches = _join(earlier, spec).join(rows, F.expr(spec.sources[alias].on or "true"), "left_semi")
    return matches.select(F.col("_touched").alias("touched")).distinct()


def _filtered(sources: Mapping[str, DataFrame], spec: GoldSpec) -> dict[str, DataFrame]:
    """Return the rows of the sources that their conditions select."""
    filtered = {}
    for alias, rows in sources.items():
        where = spec.sources[alias].where
        filtered[alias] = rows.where(where) if where else rows
    return filtered


def _join(rows: Mapping[str, DataFrame], spec: GoldSpec) -> DataFrame:
    """Return the rows of the first source, joined with those of each other one in turn."""
    first, *others = rows
    joined = rows[first].alias(first)
    for alias in others:
        source = spec.sources[alias]
        joined = joined.join(rows[alias].alias(alias), F.expr(source.on or "true"), source.join or "inner")
    return joined
