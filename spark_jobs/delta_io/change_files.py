"""Read the change feed of a table from its files, which costs less than Delta's reader of the feed.

Delta plans a query of its own for each reader of the feed, and copies each row into an object and back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import reduce
from urllib.parse import unquote

from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from include.contracts.lake_path import LakePath
from include.control.log.change_feed import feed_spans
from include.control.log.delta_log import commit_actions
from include.control.log.followed_tables import table_at
from spark_jobs.delta_io.tables import spark_path

MOST_FILES = 32
"""Spark looks up this number of files without a job of its own."""


def read_change_files(spark: SparkSession, path: LakePath, after: int, upto: int) -> DataFrame | None:
    """Return the change feed of versions (after, upto] without `_commit_timestamp`, in the columns of version `upto`.

    It returns None if Delta has to read the feed: if a commit changed rows in another way than by change files or new
    data files; if the table has partitions, deletion vectors or mapped columns; or if there are many files or none.
    """
    spans = feed_spans(path, after, upto)
    if not spans:
        return None
    try:
        commits = {version: _files(path, version) for first, last in spans for version in range(first, last + 1)}
        definition = table_at(path, upto).definition
    except (FileNotFoundError, DeltaError):
        return None
    known = {version: files for version, files in commits.items() if files is not None}
    if len(known) != len(commits) or not 0 < sum(len(names) for _, names in known.values()) <= MOST_FILES:
        return None
    if definition.protocol().min_reader_version != 1 or definition.metadata().partition_columns:
        return None
    columns = StructType.fromJson(json.loads(definition.schema().to_json()))
    with_change = StructType([*columns.fields]).add("_change_type", "string")

    def of_commit(version: int, kind: str, names: Iterable[str]) -> DataFrame:
        schema = with_change if kind == "cdc" else columns
        rows = spark.read.schema(schema).parquet(*(f"{spark_path(path)}/{unquote(name)}" for name in names))
        changes = rows if kind == "cdc" else rows.withColumn("_change_type", F.lit("insert"))
        return changes.withColumn("_commit_version", F.lit(version).cast("long"))

    try:
        frames = [of_commit(version, *files) for version, files in known.items() if files[1]]
    except PySparkException:  # a file is gone: Delta says it in its way
        return None
    return reduce(DataFrame.unionAll, frames)


def _files(path: LakePath, version: int) -> tuple[str, list[str]] | None:
    """Return the files of a commit's changes, and their kind: `cdc` or `add`; None if it also removed rows as files."""
    actions = commit_actions(path, version)
    if feed := [action["cdc"]["path"] for action in actions if "cdc" in action]:
        return "cdc", feed
    files = {kind: [action[kind] for action in actions if kind in action] for kind in ("add", "remove")}
    changed = {
        kind: [file["path"] for file in of_kind if file.get("dataChange", True)] for kind, of_kind in files.items()
    }
    return None if changed["remove"] else ("add", changed["add"])
