"""Read exact versions and version ranges of a table; nothing here reads "latest"."""

from __future__ import annotations

from functools import reduce
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.lake_path import LakePath
from millrace.control.log.change_feed import changed_files, feed_spans
from millrace_spark.delta_io.tables import spark_path

CHANGE_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")

_NO_FILE = "PATH_NOT_FOUND"
_TOO_OLD = "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION"


def read_version(spark: SparkSession, path: LakePath, version: int) -> DataFrame:
    """Return all rows of one exact version."""
    return spark.read.format("delta").option("versionAsOf", version).load(spark_path(path))


def read_appended(spark: SparkSession, path: LakePath, after: int | None, upto: int) -> DataFrame | None:
    """Return the rows that a table without updates gained in versions (after, upto]; all rows up to `upto` for None.

    None if the range cannot be read as changes.
    """
    if after is None:
        return read_version(spark, path, upto)
    if after >= upto:
        return read_version(spark, path, upto).limit(0)
    changes = read_changes(spark, path, after, upto)
    return None if changes is None else changes.where("_change_type = 'insert'").drop(*CHANGE_COLUMNS)


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
    spans = feed_spans(path, after, upto)
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


def read_changed_rows(spark: SparkSession, path: LakePath, after: int, upto: int) -> DataFrame | None:
    """Return rows among which is each row that changed in versions (after, upto], as it was and as it is.

    They are those of the change feed. Without a feed they are all rows of the data files that only one of both versions
    has. It returns None if the log, or a file, of the earlier version is gone.
    """
    changes = read_changes(spark, path, after, upto)
    if changes is not None:
        return changes
    files = changed_files(path, after, upto)
    if files is None:
        return None
    columns = read_version(spark, path, upto).schema
    names = [f"{spark_path(path)}/{unquote(name)}" for name in (*files.removed, *files.added)]
    if not names:
        return spark.createDataFrame([], columns)
    rows = spark.read.schema(columns).option("basePath", spark_path(path)).parquet(*names)
    try:
        _ = rows.columns  # Spark looks for the files
    except PySparkException as error:
        if error.getCondition() != _NO_FILE:
            raise
        return None
    return rows
