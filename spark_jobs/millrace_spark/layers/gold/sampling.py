"""Which groups of a gold table a verification compares, if not all of them."""

from __future__ import annotations

from collections.abc import Collection
from math import ceil

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.spec.column_types import TIMES_READ, WHOLE_NUMBERS
from millrace.contracts.spec.table_spec import GoldSpec
from millrace.control.log.batch import BatchSources
from millrace.control.maintenance.verification_due import Verified
from millrace_spark.delta_io.reads import read_changed_rows, read_version
from millrace_spark.layers.gold.query import rows_of_query
from millrace_spark.runtime.context import JobContext

_AS_THEY_ARE = frozenset(("string", *WHOLE_NUMBERS, *TIMES_READ))
"""The types whose values equal their texts, for Spark."""


def sampled_values(
    context: JobContext,
    session: SparkSession,
    sources: BatchSources,
    stored: DataFrame,
    column: str,
    whole: Collection[str],
) -> list[str | None]:
    """Return as many values of a column as the job has for a sample, as `text_of` gives them, other ones in each run.

    The values of groups into which rows fall that have changed since the last verification come first: only they can
    have become stale since. They are computed by the spec itself, not by what chooses the groups of a refresh.

    Args:
        context: the job, of a gold table.
        session: the session.
        sources: the versions of the sources from which the table was computed.
        stored: the rows of the table.
        column: one of its columns.
        whole: the aliases whose changes make a run compute all groups.
    """
    spec: GoldSpec = context.spec  # type: ignore[assignment]
    paths = {alias: context.paths.table(source.table) for alias, source in spec.sources.items()}
    upto = {alias: sources.ranges[source.table][1] for alias, source in spec.sources.items()}
    frames = {alias: read_version(session, path, upto[alias]) for alias, path in paths.items()}
    looked = context.ops.states.read(spec.table, Verified)
    text, kind = text_of(column, stored), stored.schema[column].dataType

    def drawn(rows: DataFrame, number: int) -> list[str | None]:
        values = rows.select(F.expr(text).cast("string").alias("value")).distinct()
        order = F.xxhash64("value", F.lit(context.args.run_id))
        return [row["value"] for row in values.orderBy(order).limit(number).collect()]

    changed = {}
    for alias in (each for each in frames if each not in whole):
        after = looked.sources.get(spec.sources[alias].table, upto[alias]) if looked else upto[alias]
        rows = read_changed_rows(session, paths[alias], after, upto[alias]) if after < upto[alias] else None
        if rows is not None:
            changed[alias] = rows.select(frames[alias].columns)
    number, values = context.args.sample, dict[str | None, None]()
    for alias, rows in changed.items():
        some = {**frames, alias: rows}
        groups = rows_of_query(session, spec, some)
        of_groups = groups.select(F.col(column).cast(kind).alias(column))
        values |= dict.fromkeys(drawn(of_groups, ceil(number / len(changed))))  # before the views of the query change
    others, (first, *_) = stored.select(column), frames
    if first in spec.refresh_from:
        others = others.union(frames[first].select(F.expr(spec.refresh_from[first]).cast(kind)))
    return [*(values | dict.fromkeys(drawn(others, number)))][:number]


def text_of(column: str, rows: DataFrame) -> str:
    """Return a column as Spark SQL of a type by whose texts Spark finds values; 0.1 as a float equals no text."""
    kind = rows.schema[column].dataType.simpleString()
    return f"`{column}`" if kind in _AS_THEY_ARE else f"CAST(`{column}` AS STRING)"
