"""Read exact versions and version ranges of a table; nothing here reads "latest"."""

from __future__ import annotations

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.contracts.lake_path import LakePath
from include.control.log.delta_log import commits_after
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
    """
    if not _has_changes(path, after, upto):
        return None
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    changes = reader.option("startingVersion", after + 1).option("endingVersion", upto).load(spark_path(path))
    try:
        # This resolves the schema, so that Delta refuses a range now and not within a write.
        _ = changes.columns
    except PySparkException as error:
        if _TOO_OLD not in str(error):
            raise
        return None
    return changes


def touched_values(
    spark: SparkSession, path: LakePath, span: tuple[int | None, int], expression: str
) -> DataFrame | None:
    """Return the distinct values (`touched`) of an expression over the rows that changed in (after, upto], both images.

    It returns None if the range cannot be read as changes.
    """
    after, upto = span
    rows = read_version(spark, path, upto) if after is None else read_changes(spark, path, after, upto)
    return None if rows is None else rows.select(F.expr(expression).alias("touched")).distinct()


def _has_changes(path: LakePath, after: int, upto: int) -> bool:
    """Whether the log has all commits of (after, upto], and the change feed was on at each."""
    try:
        commits = list(commits_after(path, after))
        settings = [commit.version for commit in commits if "PROPERTIES" in commit.operation]
        if sum(commit.version <= upto for commit in commits) != upto - after:
            return False
        if not settings:
            return _has_feed(newest_table(path))  # the setting did not change
        versions = {after + 1, *(version for version in settings if version <= upto)}
        return all(_has_feed(open_table(path, version=version, without_files=True)) for version in versions)
    except (TornLogError, DeltaError):
        return False


def _has_feed(delta: DeltaTable) -> bool:
    return delta.metadata().configuration.get("delta.enableChangeDataFeed") == "true"
