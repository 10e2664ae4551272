"""The causes of differences between a gold table and a computation from its sources, as far as they can be known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.counted import counted
from millrace.contracts.spec.table_spec import GoldSpec
from millrace.contracts.time_format import MINUTE
from millrace.control.gates.verification import reads_all
from millrace.control.log.batch import BatchSources
from millrace.control.log.delta_log import Commit, remaining_commits
from millrace.paths import LakehousePaths
from millrace.sql.query.row_order import functions_with_ties
from millrace.sql.query.select_query import query_of
from millrace_spark.layers.gold.query import refresh_of_table
from millrace_spark.transforms.differences import untouched_query
from millrace_spark.transforms.stamps import BATCH_TOKEN

_MOST_BATCHES = 3


def causes_of(
    session: SparkSession,
    paths: LakehousePaths,
    spec: GoldSpec,
    frames: Mapping[str, DataFrame],
    versions: tuple[int, Mapping[str, int]],
    stored: DataFrame,
    groups: Sequence[Mapping[str, str | None]],
) -> tuple[str, ...]:
    """Return what is known of the differences, one line each: the likely causes, then which batches wrote the groups.

    Args:
        session: the session.
        paths: the folders of the lakehouse.
        spec: the table.
        frames: alias -> the rows of the source from which the groups were computed again.
        versions: the compared version of the table, and those of its sources.
        stored: the stored rows, with their stamp.
        groups: groups that differ: column -> its value as text.
    """
    version, of_sources = versions
    commits = list(remaining_commits(paths.table(spec.table), None))
    causes = [
        *_stale(session, spec, frames),
        *_foreign("the table", commits, version),
        *(
            line
            for table, upto in of_sources.items()
            for line in _foreign(table, remaining_commits(paths.table(table), None), upto)
        ),
        *_ties(spec),
    ]
    batches = [commit for commit in commits if commit.metadata and commit.version <= version]
    by_engine = _other_engines(session, batches)
    facts = list(_batches(batches, _tokens(session, stored, groups), spec))
    if not causes and not by_engine:
        facts.append(
            "no cause was found: no other tool has changed the table or its sources, and nothing in the spec leaves a "
            f"group stale. Please report it with these lines. Meanwhile `lakehouse run --table {spec.table} "
            "--reprocess --interval ...` computes all groups again"
        )
    return (*causes, *by_engine, *facts)


def _stale(session: SparkSession, spec: GoldSpec, frames: Mapping[str, DataFrame]) -> Iterator[str]:
    if not spec.refresh_from:
        return
    keys = refresh_of_table(session, spec, frames).keys
    for alias, rows in frames.items():
        values = [F.expr(text).alias("_refresh") for text in keys.get(alias, ())]
        rows.select("*", *values, F.lit(True).alias("_exists")).createOrReplaceTempView(alias)
    counts = session.sql(untouched_query(spec)).collect()[0].asDict()
    for alias, rows in counts.items():
        if rows:
            yield (
                f"refresh_from.{alias} has another value than {spec.refreshed_group} in {counted(rows, 'joined row')}: "
                "when such a row changes, its group is not computed again"
            )


def _foreign(table: str, commits: Iterator[Commit] | Sequence[Commit], upto: int) -> Iterator[str]:
    """Yield the commits of other tools."""
    for commit in commits:
        if commit.changes_data and not commit.metadata and commit.version <= upto:
            yield (
                f"version {commit.version} of {table} is no batch: another tool has changed rows ({commit.operation})"
            )


def _ties(spec: GoldSpec) -> Iterator[str]:
    tree = query_of(spec.query).tree if spec.query else None
    for name in functions_with_ties(tree) if tree else ():
        yield (
            f"{name}() gives rows that tie in its ORDER BY another value in each run: order by further columns, until "
            "no two rows are equal in them"
        )


def _other_engines(session: SparkSession, batches: Sequence[Commit]) -> list[str]:
    engines = {commit.engine: commit.version for commit in batches if commit.engine}
    now = f"Apache-Spark/{session.version}"
    return [
        f"the last batch of {engine} is version {version}, and the comparison was computed by {now}: functions may "
        "have changed between the two"
        for engine, version in engines.items()
        if engine.partition(" ")[0] != now
    ]


def _tokens(session: SparkSession, stored: DataFrame, groups: Sequence[Mapping[str, str | None]]) -> dict[str, int]:
    """Return the token of each batch that wrote the rows of the groups -> how many rows it wrote."""
    if not groups or not groups[0]:
        return {}
    columns = list(groups[0])
    texts = ", ".join(f"`{name}` string" for name in columns)
    listed = session.createDataFrame([tuple(group[name] for name in columns) for group in groups], texts)
    same = reduce(and_, (stored[name].cast("string").eqNullSafe(listed[name]) for name in columns))
    rows = stored.join(listed, same, "left_semi").groupBy(BATCH_TOKEN).agg(F.count(F.lit(1)).alias("rows"))
    return {row[BATCH_TOKEN]: row["rows"] for row in rows.collect()}


def _batches(commits: Sequence[Commit], tokens: Mapping[str, int], spec: GoldSpec) -> Iterator[str]:
    of_token = {str(commit.metadata.get("token")): commit for commit in commits}
    found = sorted((of_token[token] for token in tokens if token in of_token), key=lambda commit: -commit.version)
    for commit in found[:_MOST_BATCHES]:
        sources = BatchSources.model_validate(commit.metadata.get("sources", {}))
        rows = counted(tokens[str(commit.metadata["token"])], "row")
        yield (
            f"{rows} of the listed groups {'was' if rows == '1 row' else 'were'} written by batch "
            f"{commit.metadata['batch_seq']} (version {commit.version}, {commit.at:{MINUTE}}), which read "
            f"{_read(sources)}"
        )
    unknown = sum(rows for token, rows in tokens.items() if token not in of_token)
    if unknown:
        yield f"{counted(unknown, 'row')} of the listed groups: the log of {spec.table} has their batch no more"


def _read(sources: BatchSources) -> str:
    if reads_all(sources):
        return "all rows of " + ", ".join(f"{table} version {upto}" for table, (_, upto) in sources.ranges.items())
    spans = (
        f"{table} version {upto}" if after == upto else f"{table} from version {after} to {upto}"
        for table, (after, upto) in sources.ranges.items()
    )
    return "the changes of " + ", ".join(spans)
