"""Reads of exact versions and of version ranges. Nothing here ever reads "latest"."""

from __future__ import annotations

from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

CHANGE_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")

_TOO_OLD = "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION"


def read_version(spark: SparkSession, path: Path, version: int) -> DataFrame:
    """All rows of one exact version."""
    return spark.read.format("delta").option("versionAsOf", version).load(str(path))


def read_appended(spark: SparkSession, path: Path, after: int | None, upto: int) -> DataFrame:
    """The rows that an append-only table gained in versions (after, upto]; all rows up to `upto` for no `after`.

    A range that begins before the table's retention cannot be read as changes any more; then all rows up to `upto` are
    read, which a merge by key and sequence takes without harm.
    """
    if after is None:
        return read_version(spark, path, upto)
    if after >= upto:
        return read_version(spark, path, upto).limit(0)
    try:
        return read_changes(spark, path, after, upto).where("_change_type = 'insert'").drop(*CHANGE_COLUMNS)
    except PySparkException as error:
        if _TOO_OLD not in str(error):
            raise
        return read_version(spark, path, upto)


def read_changes(spark: SparkSession, path: Path, after: int, upto: int) -> DataFrame:
    """The change feed of versions (after, upto]: pre- and post-images, inserts and deletes."""
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    changes = reader.option("startingVersion", after + 1).option("endingVersion", upto).load(str(path))
    # The schema is resolved here, so that a refused range fails now and not within a write.
    _ = changes.columns
    return changes


def touched_values(spark: SparkSession, path: Path, span: tuple[int | None, int], expression: str) -> DataFrame:
    """The distinct values (`touched`) of an expression over the rows that changed in (after, upto], both images."""
    after, upto = span
    rows = read_version(spark, path, upto) if after is None else read_changes(spark, path, after, upto)
    return rows.select(F.expr(expression).alias("touched")).distinct()
