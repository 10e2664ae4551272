"""Changes of a table that Delta's change feed cannot show: its columns or properties were others in between."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_jobs.delta_io.reads import read_appended, read_changed_rows, read_changes, read_removed
from spark_jobs.delta_io.tables import sql_path

FEED = "delta.enableChangeDataFeed"


def write_versions(spark: SparkSession, table: Path, *statements: str, feed: bool = True) -> None:
    """Create a table with a row, which is version 1, and run each statement on it, which makes a version each."""
    spark.sql(f"CREATE TABLE {sql_path(table)} (id INT) USING delta TBLPROPERTIES ({FEED} = {feed})")
    for statement in ("INSERT INTO {} (id) VALUES (1)", *statements):
        spark.sql(statement.format(sql_path(table)))


def test_a_restore_that_drops_a_column_is_read_from_the_files_that_changed(spark: SparkSession, tmp_path: Path) -> None:
    column, insert = "ALTER TABLE {} ADD COLUMNS (note STRING)", "INSERT INTO {} (id, note) VALUES (2, 'a')"
    restore = "RESTORE TABLE {} TO VERSION AS OF 1"
    write_versions(spark, tmp_path, column, insert, restore, "INSERT INTO {} (id) VALUES (3)")
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 2)
    with pytest.raises(PySparkException, match="INCOMPATIBLE_DATA_SCHEMA"):
        feed.load(str(tmp_path)).collect()
    assert read_changes(spark, tmp_path, 1, 5) is None
    assert read_removed(spark, tmp_path, 1, 5) is None
    assert sorted(row.id for row in read_appended(spark, tmp_path, 1, 5).collect()) == [1, 3], "all rows"
    changed = read_changed_rows(spark, tmp_path, 1, 5)
    assert changed is not None
    assert [row.id for row in changed.collect()] == [3]
    later = read_changes(spark, tmp_path, 4, 5)
    assert later is not None
    assert [row.id for row in later.collect()] == [3], "the feed since then"


def test_a_restore_that_switches_the_feed_off_is_noticed(spark: SparkSession, tmp_path: Path) -> None:
    on = f"ALTER TABLE {{}} SET TBLPROPERTIES ({FEED} = true)"
    insert, restore = "INSERT INTO {} (id) VALUES (2)", "RESTORE TABLE {} TO VERSION AS OF 1"
    write_versions(spark, tmp_path, on, insert, restore, insert, on, feed=False)
    changed = read_changed_rows(spark, tmp_path, 2, 6)
    assert changed is not None
    assert [row.id for row in changed.collect()] == [2]


def test_added_columns_are_in_the_feed(spark: SparkSession, tmp_path: Path) -> None:
    write_versions(
        spark, tmp_path, "ALTER TABLE {} ADD COLUMNS (note STRING)", "INSERT INTO {} (id, note) VALUES (2, 'a')"
    )
    changes = read_changes(spark, tmp_path, 1, 3)
    assert changes is not None
    assert [(row.id, row.note) for row in changes.collect()] == [(2, "a")]
