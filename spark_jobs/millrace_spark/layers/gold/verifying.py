"""Compare the certified version of a gold table with a computation from the same versions of its sources.

A sample of the groups is compared, if not all of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.counted import counted
from millrace.contracts.job.report import CheckResult
from millrace.contracts.restricted import RestrictedColumns
from millrace.contracts.spec.column_types import TIMES_READ, WHOLE_NUMBERS
from millrace.contracts.spec.table_spec import GoldSpec
from millrace.control.gates.verdicts import Verdicts
from millrace.control.gates.verification import RULE
from millrace.control.log.batch import BatchSources, Stream, Winner
from millrace.control.maintenance.verification_due import Verified, changes_of_values
from millrace.errors import NotReadyError
from millrace.sql.expression import expression_of
from millrace.sql.query.refresh import refresh_of
from millrace.sql.query.row_order import columns_by_order, functions_by_order
from millrace.sql.query_functions import DEPENDS_ON_ORDER
from millrace_spark.delta_io.reads import read_changed_rows, read_version
from millrace_spark.delta_io.row_writes import read_observation
from millrace_spark.layers.gold.difference_causes import causes_of
from millrace_spark.layers.gold.float_bounds import with_bounds
from millrace_spark.layers.gold.gold import GoldAggregate
from millrace_spark.layers.gold.query import rows_of_query
from millrace_spark.runtime.context import JobContext
from millrace_spark.transforms.differences import GREATEST, LEAST, as_groups, compare_groups
from millrace_spark.transforms.stamps import STAMP_COLUMNS
from millrace_spark.transforms.touched_rows import is_touched

MAX_DIFFERENCES = 20
"""The number of groups whose differences are reported one by one."""

_INEXACT = re.compile(r"\b(float|double|map<)")
"""The types by whose values Spark cannot group rows, or which depend on the order of the rows of a sum."""

_GONE = (
    "FILE_NOT_EXIST",
    "DELTA_UNSUPPORTED_TIME_TRAVEL",
    "DELTA_VERSION_NOT_FOUND",
    "DELTA_TRUNCATED_TRANSACTION_LOG",
)


@dataclass(frozen=True)
class Comparison:
    """The result of a verification.

    Attributes:
        version: the certified version, whose rows were compared.
        sources: source table -> the version from which the rows were computed.
        groups: the number of compared groups.
        differing: how many of them differ.
        differences: the first of them: group column -> value, the column that differs, its two values.
        left_out: measure -> why it was not compared.
        sampled_by: the column by whose values a sample was taken; empty if all groups were compared.
        causes: the likely causes of the differences, one line each.
    """

    version: int
    sources: dict[str, int]
    groups: int
    differing: int
    differences: tuple[dict[str, Any], ...]
    left_out: dict[str, str]
    sampled_by: str = ""
    causes: tuple[str, ...] = ()

    @property
    def failure(self) -> CheckResult | None:
        """The failed check; None if no group differs."""
        if not self.differing:
            return None
        sources = ", ".join(f"{table} version {version}" for table, version in self.sources.items())
        return CheckResult(
            rule=RULE,
            action="fail",
            passed=False,
            severity="critical",
            reason=f"computed from {sources}",
            observed=f"{self.differing:,} of {counted(self.groups, 'group')} differ from a computation from scratch",
        )


def compare_with_sources(context: JobContext, verdicts: Verdicts, sample: int) -> Comparison:
    """Compare the certified version with a computation from the versions of the sources that its batch has read.

    Args:
        context: the job, of a gold table.
        verdicts: the summary of the table's gate results, with a certified version.
        sample: the number of values of `refresh_by` whose groups are compared; 0 for all.

    Raises:
        NotReadyError: the spec has changed since that batch, or a version is not readable any more.
        BadInputError: a source was replaced by another table.
    """
    spec, version = context.spec, verdicts.certified
    if not isinstance(spec, GoldSpec) or version is None:
        raise ValueError(f"{spec.table} is not computed from its sources alone, or has no certified version")
    batch = context.ops.ledger.last_recorded(spec.table, verdicts.table_id, Stream(spec.table).name, version)
    if batch is None:
        raise NotReadyError(f"{spec.table}: no batch has written version {version}, so that its sources are unknown")
    if batch.intent.sources.deletes and not batch.intent.sources.erases:
        raise NotReadyError(
            f"{spec.table}: batch {batch.batch_seq} has deleted rows that its sources had then: "
            f"{batch.intent.sources.deletes}; nothing was compared",
            f"Run {spec.table}, then verify the version that it writes.",
        )
    if changes := changes_of_values(spec, batch, context.ops):
        raise NotReadyError(
            f"{spec.table}: its spec has changed since version {batch.version}: {changes}; nothing was compared",
            f"`lakehouse diff {spec.table}` says what to run first.",
        )
    try:
        with context.reading_session({}) as session:
            return _Verification(context, spec, session, version, batch).compare(sample)
    except PySparkException as error:
        if not any(word in str(error) for word in _GONE):
            raise
        raise NotReadyError(
            f"{spec.table}: version {version}, or a version from which it was computed, is not readable any more",
            f"Run {spec.table}, then verify the version that it writes.",
        ) from error


class _Verification:
    """One comparison, in one Spark session."""

    def __init__(self, context: JobContext, spec: GoldSpec, session: SparkSession, version: int, batch: Winner) -> None:
        self._context = context
        self._spec = spec
        self._session = session
        self._version = version
        self._sources = batch.intent.sources

    def compare(self, sample: int) -> Comparison:
        """Return the differences between the version and a computation from scratch."""
        spec = self._spec
        stored = read_version(self._session, self._context.paths.table(spec.table), self._version)
        column, whole = self._refreshed_column() if sample else ("", ())
        values = sampled_values(self._context, self._session, self._sources, stored, column, whole) if column else []
        computed = with_bounds(self._from_scratch, spec)
        if column:
            computed = computed.withColumn(column, F.col(column).cast(stored.schema[column].dataType))
            stored, computed = (rows.where(is_touched(text_of(column, rows), values)) for rows in (stored, computed))
        left_out = self._left_out()
        columns = [name for name in stored.columns if name not in (*STAMP_COLUMNS, *left_out)]
        if not columns:
            return Comparison(self._version, self._source_versions, 0, 0, (), left_out, column)
        # A query's rows have no key, so that all columns identify a row but those of inexact numbers and maps.
        groups = list(spec.group_by) or [
            name
            for name in columns
            if not _INEXACT.search(stored.schema[name].dataType.simpleString())
            and f"{LEAST}{name}" not in computed.columns
        ]
        measures = [name for name in columns if name not in groups]
        before, after = stored, computed
        if not spec.group_by and measures:
            bounds = [name for name in computed.columns if name.startswith((LEAST, GREATEST))]
            before, after = as_groups(stored, groups, measures), as_groups(computed, groups, [*measures, *bounds])
        observation = Observation()
        compared = compare_groups(before, after, groups, measures).observe(
            observation, F.count(F.lit(1)).alias("groups"), F.count_if("_is_different").alias("differing")
        )
        rows = _texts(compared.where("_is_different"), groups, measures)
        restricted = self._context.restricted(spec.table)
        differences = tuple(each for row in rows for each in _differences(row, restricted))
        counts = read_observation(observation) or {"groups": 0, "differing": 0}
        return Comparison(
            version=self._version,
            sources=self._source_versions,
            **counts,
            differences=differences,
            left_out=left_out,
            sampled_by=column,
            causes=self._causes(stored, [row["group"] for row in rows]) if counts["differing"] else (),
        )

    @property
    def _source_versions(self) -> dict[str, int]:
        return {table: upto for table, (_, upto) in self._sources.ranges.items()}

    def _causes(self, stored: DataFrame, groups: list[dict[str, str | None]]) -> tuple[str, ...]:
        frames = {alias: self._source(alias) for alias in self._spec.sources}
        versions = (self._version, self._source_versions)
        return causes_of(self._session, self._context.paths, self._spec, frames, versions, stored, groups)

    def _from_scratch(self, spec: GoldSpec) -> DataFrame:
        return GoldAggregate(self._context, spec).from_scratch(self._session, self._sources)

    def _left_out(self) -> dict[str, str]:
        """Return the columns that cannot be compared, each with the reason."""
        spec = self._spec
        if spec.query is None:
            return _measures_by_order(spec)
        return columns_by_order(spec.query, self._columns_of_sources())

    def _columns_of_sources(self) -> dict[str, tuple[str, ...]]:
        return {alias: tuple(self._source(alias).columns) for alias in self._spec.sources}

    def _refreshed_column(self) -> tuple[str, Collection[str]]:
        """Return the first column by which a run selects rows, and the aliases whose changes it cannot trace.

        The column is empty if each run computes all of them.
        """
        spec = self._spec
        if spec.refresh_from:
            return spec.refreshed_group, ()
        found = refresh_of(spec, self._columns_of_sources())
        return next(iter(spec.refresh_columns or found.columns), ""), found.whole

    def _source(self, alias: str) -> DataFrame:
        table = self._spec.sources[alias].table
        return read_version(self._session, self._context.paths.table(table), self._sources.ranges[table][1])


def _measures_by_order(spec: GoldSpec) -> dict[str, str]:
    """Return the measures that may depend on the order of the rows, each with the reason."""
    left_out: dict[str, str] = {}
    for name, text in spec.measures.items():
        sql = expression_of(text)
        called = functions_by_order(sql.tree) if sql.tree else map(str.lower, sql.functions)
        by_order = sorted(DEPENDS_ON_ORDER.intersection(called))
        read = [column[0] for column in sql.columns if len(column) == 1 and column[0] in left_out]
        if by_order:
            left_out[name] = f"{by_order[0]} may depend on the order of the rows"
        elif read:
            left_out[name] = f"it is computed from {read[0]}"
    return left_out


def _texts(different: DataFrame, groups: Sequence[str], measures: Sequence[str]) -> list[dict[str, Any]]:
    """Return the first different groups, with all values as text."""
    group = F.struct(*(F.col(name).cast("string").alias(name) for name in groups)).alias("group")
    columns = ("_exists", *measures)
    sides = [
        F.when(F.col(side).isNotNull(), F.struct(*(F.col(f"{side}.{m}").cast("string").alias(m) for m in columns)))
        for side in ("_stored", "_computed")
    ]
    texts = different.select(group, "_differing", sides[0].alias("stored"), sides[1].alias("computed"))
    return [row.asDict(recursive=True) for row in texts.orderBy("group").limit(MAX_DIFFERENCES).collect()]


def _differences(row: dict[str, Any], restricted: RestrictedColumns) -> list[dict[str, Any]]:
    stored, computed = row["stored"], row["computed"]
    group = {name: restricted.shown(name, value) for name, value in row["group"].items()}
    if stored is None or computed is None or not row["_differing"]:
        there, missing = {"column": "", "stored": "a row", "computed": "a row"}, "no row"
        other = {"stored": missing} if stored is None else {"computed": missing} if computed is None else {}
        return [{"group": group, **there, **(other or {"stored": "several rows"})}]
    return [
        {"group": group, "column": name}
        | {side: restricted.shown(name, values[name]) for side, values in (("stored", stored), ("computed", computed))}
        for name in row["_differing"]
    ]


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
