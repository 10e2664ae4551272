"""The change feed that is read from its files has the rows of Delta's own reader, or Delta has to read it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.delta_io.change_files import read_change_files
from spark_jobs.delta_io.reads import read_changes


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Path:
    rows = spark.range(4).selectExpr("id", "concat('order ', id) AS note")
    rows.write.format("delta").option("delta.enableChangeDataFeed", "true").save(str(tmp_path))
    return tmp_path


def test_it_has_the_rows_of_appends_updates_and_deletes_with_their_commits(spark: SparkSession, table: Path) -> None:
    spark.range(4, 6).selectExpr("id", "'new' AS note").write.format("delta").mode("append").save(str(table))
    spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMN price decimal(10, 2)")
    spark.sql(f"UPDATE delta.`{table}` SET note = NULL, price = 1.5 WHERE id IN (1, 4)").collect()
    spark.sql(f"OPTIMIZE delta.`{table}`").collect()
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 2").collect()
    read, expected = read_change_files(spark, table, 0, 5), read_changes(spark, table, 0, 5)
    assert read is not None
    assert expected is not None
    rows, of_delta = read.collect(), expected.drop("_commit_timestamp").collect()
    assert len(rows) == 2 + 4 + 1
    assert sorted(rows, key=str) == sorted(of_delta, key=str)


def test_delta_reads_commits_that_removed_whole_files_or_have_no_files(spark: SparkSession, table: Path) -> None:
    spark.sql(f"OPTIMIZE delta.`{table}`").collect()
    version = int(spark.sql(f"DESCRIBE HISTORY delta.`{table}`").first()["version"])  # type: ignore[index]
    spark.sql(f"DELETE FROM delta.`{table}`").collect()
    assert read_change_files(spark, table, version, version + 1) is None
    assert read_change_files(spark, table, 0, version) is None


def test_delta_reads_a_table_with_partitions(spark: SparkSession, tmp_path: Path) -> None:
    writer = spark.range(4).selectExpr("id", "id % 2 AS part").write.format("delta").partitionBy("part").mode("append")
    writer.option("delta.enableChangeDataFeed", "true").save(str(tmp_path))
    writer.save(str(tmp_path))
    assert read_change_files(spark, tmp_path, 0, 1) is None
