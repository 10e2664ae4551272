"""The figures that table rules need, worked out in one query, however many rules there are."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

GATE_CONF = {
    # Adaptive execution runs each shuffle as a job of its own; here they are small, and one job is the promise.
    "spark.sql.adaptive.enabled": "false",
    # By default a hundred figures and more are interpreted instead of compiled.
    "spark.sql.codegen.maxFields": "2000",
}
"""The settings under which a version is judged."""

Facts: TypeAlias = Mapping[str, Any]
"""Figure -> value."""

Group: TypeAlias = tuple[str, ...]
"""Columns whose combinations of values are counted; a row without any value in them has none."""

COUNT = "_rows_of_value"
"""The column of the number of rows that have a combination."""


@dataclass(frozen=True)
class Figures:
    """What a rule needs to know.

    Attributes:
        flat: figure -> aggregate over all rows. Rules that share a figure give it the same name.
        groups: combinations of columns, of which `of_group` names the figures.
    """

    flat: Mapping[str, Column] = field(default_factory=dict)
    groups: frozenset[Group] = frozenset()


def of_group(columns: Group, figure: str) -> str:
    """The name of a figure of a group: `values` (combinations), `rows` (that have one), `repeated` (that share one).

    >>> of_group(("maker", "model"), "repeated")
    'repeated of maker, model'
    """
    return f"{figure} of {', '.join(columns)}"


def all_figures(wanted: Iterable[Figures]) -> Figures:
    """What several rules need together, each figure once."""
    every = list(wanted)
    flat = {name: figure for one in every for name, figure in one.flat.items()}
    return Figures(flat, frozenset(group for one in every for group in one.groups))


def worked_out(df: DataFrame, wanted: Figures) -> Facts:
    """The figures, by one query; by none where nothing is wanted.

    Raises:
        PySparkException: one of the aggregates cannot be worked out, or the frame cannot be read.
    """
    named = list(wanted.flat.items())
    flat = [df.agg(*[figure.alias(f"flat_{place}") for place, (_, figure) in enumerate(named)])] if named else []
    groups = sorted(wanted.groups)
    names = {f"flat_{place}": name for place, (name, _) in enumerate(named)}
    names |= {f"{figure}_{place}": of_group(group, figure) for place, group in enumerate(groups) for figure in _GROUPED}
    found = collected_together([*flat, *(_totals(df, group, place) for place, group in enumerate(groups))])
    return {name: found.get(column) for column, name in names.items()}


def collected_together(frames: Sequence[DataFrame]) -> dict[str, Any]:
    """The values of frames of one row each, by column; columns without a value are left out."""
    if not frames:
        return {}
    # A union and not a join, which would broadcast each of them in a job of its own.
    rows = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), frames).collect()
    return {name: value for row in rows for name, value in row.asDict().items() if value is not None}


def grouped(df: DataFrame, columns: Group) -> DataFrame:
    """The combinations of values and how many rows have each (`COUNT`), that of no values at all among them.

    Nothing is filtered: Delta lists the files of a table once in a query, unless the filters of its scans differ.
    """
    distinct = list(dict.fromkeys(columns))
    return df.groupBy(*distinct).agg(F.count(F.lit(1)).alias(COUNT))


def is_repeated(columns: Group) -> Column:
    """True for a combination that several rows share; one of no values at all is none."""
    return has_a_value(columns) & (F.col(COUNT) > 1)


def has_a_value(columns: Group) -> Column:
    """True unless all of the columns are NULL."""
    return reduce(operator.or_, [F.col(column).isNotNull() for column in columns])


def require_readable(df: DataFrame) -> None:
    """Raise what Spark raises if it cannot give a single row, so that no rule is blamed for a server that went away.

    Raises:
        PySparkException: the frame cannot be read.
    """
    df.limit(1).collect()


_GROUPED = ("values", "rows", "repeated")


def _totals(df: DataFrame, columns: Group, place: int) -> DataFrame:
    counted, rows = has_a_value(columns), F.col(COUNT)
    return grouped(df, columns).agg(
        F.count_if(counted).alias(f"values_{place}"),
        F.coalesce(F.sum(F.when(counted, rows)), F.lit(0)).alias(f"rows_{place}"),
        F.coalesce(F.sum(F.when(is_repeated(columns), rows)), F.lit(0)).alias(f"repeated_{place}"),
    )
