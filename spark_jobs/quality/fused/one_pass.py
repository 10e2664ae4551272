"""Compute the figures that table rules need, in one query for any number of rules."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.quality.fused.adjustments import Adjustment, Facts
from spark_jobs.quality.fused.change import Change, adjusted_figures

GATE_CONF = {
    # Adaptive execution runs each shuffle as its own job; the shuffles here are small, and one job is promised.
    "spark.sql.adaptive.enabled": "false",
    # By default Spark interprets queries with a hundred figures or more instead of compiling them.
    "spark.sql.codegen.maxFields": "2000",
}
"""The Spark settings of a session that checks a version."""

Group: TypeAlias = tuple[str, ...]
"""Columns whose combinations of values are counted; a row with NULL in all of them has no combination."""

OF_GROUPS = ("values", "rows", "repeated")
"""The figures of a group."""

COUNT = "_rows_of_value"
"""The column with the number of rows that have a combination."""


@dataclass(frozen=True)
class Figures:
    """The figures that a rule needs.

    Attributes:
        flat: figure -> aggregate over all rows. Rules that share a figure give it the same name.
        groups: combinations of columns; `group_figure` names their figures.
        adjust: figure -> how it follows from that of an earlier version; a figure without it is computed from all rows.
    """

    flat: Mapping[str, Column] = field(default_factory=dict)
    groups: frozenset[Group] = frozenset()
    adjust: Mapping[str, Adjustment] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        """The names of all these figures."""
        of_groups = {group_figure(group, figure) for group in self.groups for figure in OF_GROUPS}
        return {*self.flat, *of_groups}


@dataclass(frozen=True)
class ComputedFigures:
    """The figures of a version.

    Attributes:
        facts: the figures.
        adjusted: the names of those that follow from an earlier version; all rows were read for the others.
        lasting: those from which figures of the next version can follow.
    """

    facts: Facts
    adjusted: frozenset[str]
    lasting: Facts


def group_figure(columns: Group, figure: str) -> str:
    """Name a group's figure: `values` (combinations), `rows` (with a combination), `repeated` (rows that share one).

    >>> group_figure(("maker", "model"), "repeated")
    'repeated of maker, model'
    """
    return f"{figure} of {', '.join(columns)}"


def compute_figures(df: DataFrame, figures: Iterable[Figures], change: Change | None = None) -> ComputedFigures:
    """Compute the figures of several rules, each figure once.

    One query reads the rows that changed, and one all rows for the remaining figures; either only if it is needed.

    Args:
        df: all rows of the version.
        figures: the figures of each rule.
        change: what changed since an earlier version; None computes all figures from all rows.

    Raises:
        PySparkException: an aggregate cannot be computed, or the frame cannot be read.
    """
    of_rules = list(figures)
    flat = {name: figure for rule in of_rules for name, figure in rule.flat.items()}
    adjust = {name: adjustment for rule in of_rules for name, adjustment in rule.adjust.items()}
    adjusted = adjusted_figures(change, flat, adjust) if change else {}
    remaining = {name: figure for name, figure in flat.items() if name not in adjusted}
    groups = sorted({group for rule in of_rules for group in rule.groups})
    facts = {**_of_all_rows(df, remaining, groups), **adjusted}
    return ComputedFigures(facts, frozenset(adjusted), {name: facts[name] for name in adjust})


def _of_all_rows(df: DataFrame, flat: Mapping[str, Column], groups: Sequence[Group]) -> Facts:
    frames = [df.agg(*(figure.alias(f"flat_{number}") for number, figure in enumerate(flat.values())))] if flat else []
    frames += [_totals(df, group, number) for number, group in enumerate(groups)]
    values = collect_together(frames)
    facts = {name: values.get(f"flat_{number}") for number, name in enumerate(flat)}
    for number, group in enumerate(groups):
        for figure in OF_GROUPS:
            facts[group_figure(group, figure)] = values.get(f"{figure}_{number}")
    return facts


def collect_together(frames: Sequence[DataFrame]) -> dict[str, Any]:
    """Return the values of frames with one row each, by column; columns without a value are left out."""
    if not frames:
        return {}
    # A union, because a join would broadcast each frame in its own job.
    rows = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), frames).collect()
    return {name: value for row in rows for name, value in row.asDict().items() if value is not None}


def grouped(df: DataFrame, columns: Group) -> DataFrame:
    """Return the combinations of values and how many rows have each (`COUNT`), including the one that is all NULL.

    It does not filter: Delta lists the files of a table once per query, unless the filters of its scans differ.
    """
    distinct = list(dict.fromkeys(columns))
    return df.groupBy(*distinct).agg(F.count(F.lit(1)).alias(COUNT))


def is_repeated(columns: Group) -> Column:
    """Return true for a combination that several rows share, unless it is all NULL."""
    return has_a_value(columns) & (F.col(COUNT) > 1)


def has_a_value(columns: Group) -> Column:
    """Return true unless all of the columns are NULL."""
    return reduce(operator.or_, [F.col(column).isNotNull() for column in columns])


def require_readable(df: DataFrame) -> None:
    """Raise Spark's error if it cannot read a single row, so that no rule is blamed for a lost server.

    Raises:
        PySparkException: the frame cannot be read.
    """
    df.limit(1).collect()


def _totals(df: DataFrame, columns: Group, number: int) -> DataFrame:
    has_value, rows = has_a_value(columns), F.col(COUNT)
    return grouped(df, columns).agg(
        F.count_if(has_value).alias(f"values_{number}"),
        F.coalesce(F.sum(F.when(has_value, rows)), F.lit(0)).alias(f"rows_{number}"),
        F.coalesce(F.sum(F.when(is_repeated(columns), rows)), F.lit(0)).alias(f"repeated_{number}"),
    )
