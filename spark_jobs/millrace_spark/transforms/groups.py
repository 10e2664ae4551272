"""Gold: compute measures per group over joined tables, and find the groups that a change of a joined row affects."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millrace.contracts.spec.table_spec import GoldSpec
from millrace_spark.transforms.touched_rows import Touched, gives_touched, is_touched
from millrace_spark.transforms.touched_spans import INTEGERS, TIMES

_BY_TEXT = {"boolean": "", "string": "", **dict.fromkeys(INTEGERS, "number"), **dict.fromkeys(TIMES, "time")}
"""The types besides decimals whose values Spark finds by their texts -> of which other types it finds them, too. As a
number, the text of a float is another one, and 0.0 = -0.0 have two texts. The text 1.00 is no whole number."""


def aggregate(sources: Mapping[str, DataFrame], spec: GoldSpec, touched: Touched | None) -> DataFrame:
    """Compute the groups of a gold table.

    Args:
        sources: alias -> all rows of that source, at one version.
        spec: the joins, groups and measures.
        touched: values of `refresh_by`; only their groups are computed. None computes all groups.

    Returns:
        The columns of `group_by`, then the columns of `measures`.
    """
    frames = _filtered(sources, spec)
    if touched is not None:
        frames |= {
            alias: rows.where(gives_touched(spec.refresh_from[alias], rows, touched))
            for alias, rows in frames.items()
            if not spec.sources[alias].lookup
        }
    joined = _join(frames, spec)
    groups = [F.expr(expression).alias(name) for name, expression in spec.group_by.items()]
    measures = [F.expr(expression).alias(name) for name, expression in spec.measures.items()]
    grouped = joined.groupBy(*groups).agg(*measures)
    return grouped if touched is None else grouped.where(is_touched(f"`{spec.refreshed_group}`", touched))


def unlisted_value(sources: Mapping[str, DataFrame], spec: GoldSpec) -> str:
    """Return which value of `refresh_by` or `refresh_from` cannot choose rows by its text, and why; empty if all can.

    Args:
        sources: as for `aggregate`.
        spec: the joins, groups and measures.
    """
    group = spec.refreshed_group
    kinds = {group: aggregate(sources, spec, None).schema[group].dataType.simpleString()}
    for alias, text in spec.refresh_from.items():
        (value,) = sources[alias].select(F.expr(text)).schema.fields
        kinds[f"refresh_from.{alias}"] = value.dataType.simpleString()
    for name, kind in kinds.items():
        if kind not in _BY_TEXT and not kind.startswith("decimal("):
            return f"{name} is {kind}, by whose values no run can choose rows"
    families = {name: _BY_TEXT.get(kind, "decimal") or kind for name, kind in kinds.items()}
    other = next((name for name, family in families.items() if family != families[group]), "")
    return other and f"{other} is {kinds[other]}, and {group} is {kinds[group]}: their values have other texts"


def join_sources(sources: Mapping[str, DataFrame], spec: GoldSpec) -> DataFrame:
    """Return the joined rows of the sources that meet their `where`; their columns are named `<alias>.<column>`."""
    return _join(_filtered(sources, spec), spec)


def touched_by_lookup(alias: str, changed: DataFrame, sources: Mapping[str, DataFrame], spec: GoldSpec) -> DataFrame:
    """Return the values of `refresh_by` (`touched`) of the first source's rows that match changed rows of a lookup.

    A row that matched the lookup before it changed, and has not changed itself, matches the row as it was. A row that
    has changed itself counts as touched anyway, and so does one whose match in an earlier lookup has changed.

    Args:
        alias: the alias of the lookup.
        changed: its changed rows, as they were and as they are.
        sources: alias -> all rows of that source, at one version; only those before the lookup are read.
        spec: the joins.
    """
    first, *_ = aliases = list(spec.sources)
    earlier = _filtered({name: sources[name] for name in aliases[: aliases.index(alias)]}, spec)
    earlier[first] = earlier[first].withColumn("_touched", F.expr(spec.refresh_from[first]))
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
