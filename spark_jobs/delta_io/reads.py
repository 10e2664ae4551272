"""Read exact versions and version ranges of a table; nothing here reads "latest"."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.contracts.lake_path import LakePath
from include.control.log.batch import UNDO
from include.control.log.delta_log import Commit, commits_after
from include.control.log.followed_tables import newest_table
from include.control.log.stored_tables import open_table
from include.errors import TornLogError
from spark_jobs.delta_io.tables import spark_path

CHANGE_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")

_TOO_OLD = "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION"


def read_version(spark: SparkSession, path: LakePath, version: int) -> DataFrame:
    """Return all rows of one exact version."""
    return spark.read.format("delta").option("versionAsOf", version).load(spark_path(path))


def read_appended(spark: SparkSession, path: LakePath, after: int | None, upto: int) -> DataFrame:
    """Return the rows that a table without updates gained in versions (after, upto]; all rows up to `upto` for None.

    If the range cannot be read as changes, it returns all rows up to `upto`, which a merge by key and sequence accepts.
    """
    if after is None:
        return read_version(spark, path, upto)
    if after >= upto:
        return read_version(spark, path, upto).limit(0)
    changes = read_changes(spark, path, after, upto)
    if changes is None:
        return read_version(spark, path, upto)
    return changes.where("_change_type = 'insert'").drop(*CHANGE_COLUMNS)


def read_removed(spark: SparkSession, path: LakePath, after: int, upto: int) -> DataFrame | None:
    """Return the rows that a table lost in versions (after, upto]; None if the range cannot be read as changes."""
    changes = read_changes(spark, path, after, upto)
    return None if changes is None else changes.where("_change_type = 'delete'").drop(*CHANGE_COLUMNS)


def read_changes(spark: SparkSession, path: LakePath, after: int, upto: int) -> DataFrame | None:
    """Return the change feed of versions (after, upto]: pre- and post-images, inserts and deletes.

    It returns None if the range begins before the table's retention or its oldest commit, or if the feed was off in it.
    Delta reports the last case only within a write, so this reads the log first.

    A rebuild that was undone in the range is left out, with all commits in between: it changed nothing in the end, and
    Delta refuses a feed across the other columns that the table may have had meanwhile.
    """
    spans = _spans(path, after, upto)
    if spans is None:
        return None
    if not spans:
        no_change = (
            F.lit("").alias(CHANGE_COLUMNS[0]),
            F.lit(0).alias(CHANGE_COLUMNS[1]),
            F.lit(None).cast("timestamp").alias(CHANGE_COLUMNS[2]),
        )
        return read_version(spark, path, upto).limit(0).select("*", *no_change)
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    feeds = [
        reader.option("startingVersion", first).option("endingVersion", last).load(spark_path(path))
        for first, last in spans
    ]
    try:
        # This resolves the schemas, so that Delta refuses a range now and not within a write.
        _ = [feed.columns for feed in feeds]
    except PySparkException as error:
        if _TOO_OLD not in str(error):
            raise
        return None
    return reduce(lambda feed, later: feed.unionByName(later, allowMissingColumns=True), feeds)


def touched_values(
    spark: SparkSession, path: LakePath, span: tuple[int | None, int], expression: str
) -> DataFrame | None:
    """Return the distinct values (`touched`) of an expression over the rows that changed in (after, upto], both images.

    It returns None if the range cannot be read as changes.
    """
    after, upto = span
    rows = read_version(spark, path, upto) if after is None else read_changes(spark, path, after, upto)
    return None if rows is None else rows.select(F.expr(expression).alias("touched")).distinct()


def _spans(path: LakePath, after: int, upto: int) -> list[tuple[int, int]] | None:
    """Return the (first, last) versions of (after, upto] that make up its changes, without undone rebuilds.

    It returns None if the log lacks a commit of the range, or if the change feed was off at one.
    """
    try:
        commits = list(commits_after(path, after))
        in_range = [commit for commit in commits if commit.version <= upto]
        settings = [commit.version for commit in commits if "PROPERTIES" in commit.operation]
        if len(in_range) != upto - after:
            return None
        versions = {after + 1, *(version for version in settings if version <= upto)}
        feeds = (
            [open_table(path, version=version, without_files=True) for version in versions]
            if settings
            else [newest_table(path).definition]  # the setting did not change
        )
        feed_settings = (feed.metadata().configuration.get("delta.enableChangeDataFeed") for feed in feeds)
        return _without_undone_rebuilds(in_range) if all(setting == "true" for setting in feed_settings) else None
    except (TornLogError, DeltaError):
        return None


def _without_undone_rebuilds(commits: Sequence[Commit]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    first, switches = commits[0].version, dict[str, int]()
    for commit in commits:
        rebuild = str(commit.metadata.get("sources", {}).get("rebuild", ""))
        if (switch := switches.get(rebuild.removeprefix(UNDO))) and rebuild.startswith(UNDO):
            spans.append((first, switch - 1))
            first = commit.version + 1
        switches[rebuild] = commit.version
    spans.append((first, commits[-1].version))
    return [(begin, end) for begin, end in spans if begin <= end]
