"""Groups: combinations of values, and how many rows have each."""

from __future__ import annotations

import operator
from functools import reduce
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

Group: TypeAlias = tuple[str, ...]
"""Columns whose combinations of values are counted; a row with NULL in all of them has no combination."""

OF_GROUPS = ("values", "rows", "repeated")
"""The figures of a group: combinations, rows with a combination, and rows that share theirs with others."""

COUNT = "_rows_of_value"
"""The column with the number of rows that have a combination."""


def group_figure(columns: Group, figure: str) -> str:
    """Name a group's figure.

    >>> group_figure(("maker", "model"), "repeated")
    'repeated of maker, model'
    """
    return f"{figure} of {', '.join(columns)}"


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


def group_totals(df: DataFrame, columns: Group, number: int) -> DataFrame:
    """Return the figures of a group as one row of columns such as `values_<number>`."""
    has_value, rows = has_a_value(columns), F.col(COUNT)
    return grouped(df, columns).agg(
        F.count_if(has_value).alias(f"values_{number}"),
        F.coalesce(F.sum(F.when(has_value, rows)), F.lit(0)).alias(f"rows_{number}"),
        F.coalesce(F.sum(F.when(is_repeated(columns), rows)), F.lit(0)).alias(f"repeated_{number}"),
    )
