"""Compute the figures that table rules need, in one query for any number of rules."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

GATE_CONF = {
    # Adaptive execution runs each shuffle as its own job; the shuffles here are small, and one job is promised.
    "spark.sql.adaptive.enabled": "false",
    # By default Spark interprets queries with a hundred figures or more instead of compiling them.
    "spark.sql.codegen.maxFields": "2000",
}
"""The Spark settings of a session that checks a version."""

Facts: TypeAlias = Mapping[str, Any]
"""Figure -> value."""

Group: TypeAlias = tuple[str, ...]
"""Columns whose combinations of values are counted; a row with NULL in all of them has no combination."""

COUNT = "_rows_of_value"
"""The column with the number of rows that have a combination."""


@dataclass(frozen=True)
class Figures:
    """The figures that a rule needs.

    Attributes:
        flat: figure -> aggregate over all rows. Rules that share a figure give it the same name.
        groups: combinations of columns; `group_figure` names their figures.
    """

    flat: Mapping[str, Column] = field(default_factory=dict)
    groups: frozenset[Group] = frozenset()


def group_figure(columns: Group, figure: str) -> str:
    """Name a group's figure: `values` (combinations), `rows` (with a combination), `repeated` (rows that share one).

    >>> group_figure(("maker", "model"), "repeated")
    'repeated of maker, model'
    """
    return f"{figure} of {', '.join(columns)}"


def merge_figures(figures: Iterable[Figures]) -> Figures:
    """Return the figures that several rules need together, each figure once."""
    every = list(figures)
    flat = {name: figure for part in every for name, figure in part.flat.items()}
    return Figures(flat, frozenset(group for part in every for group in part.groups))


def compute_figures(df: DataFrame, figures: Figures) -> Facts:
    """Compute the figures in one query, or without a query if there are none.

    Raises:
        PySparkException: an aggregate cannot be computed, or the frame cannot be read.
    """
    named = list(figures.flat.items())
    flat = [df.agg(*[figure.alias(f"flat_{number}") for number, (_, figure) in enumerate(named)])] if named else []
    groups = sorted(figures.groups)
    names = {f"flat_{number}": name for number, (name, _) in enumerate(named)}
    names |= {
        f"{figure}_{number}": group_figure(group, figure) for number, group in enumerate(groups) for figure in _GROUPED
    }
    values = collect_together([*flat, *(_totals(df, group, number) for number, group in enumerate(groups))])
    return {name: values.get(column) for column, name in names.items()}


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


_GROUPED = ("values", "rows", "repeated")


def _totals(df: DataFrame, columns: Group, number: int) -> DataFrame:
    has_value, rows = has_a_value(columns), F.col(COUNT)
    return grouped(df, columns).agg(
        F.count_if(has_value).alias(f"values_{number}"),
        F.coalesce(F.sum(F.when(has_value, rows)), F.lit(0)).alias(f"rows_{number}"),
        F.coalesce(F.sum(F.when(is_repeated(columns), rows)), F.lit(0)).alias(f"repeated_{number}"),
    )
