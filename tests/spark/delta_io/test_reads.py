"""Changes of a table that Delta's change feed cannot show: its columns or properties were others in between."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from millrace_spark.delta_io.reads import read_appended, read_changed_rows, read_changes, read_removed
from millrace_spark.delta_io.tables import sql_path

FEED = "delta.enableChangeDataFeed"
DAYS_AND_TIMES = pa.schema([("day", pa.date32()), ("at", pa.timestamp("us", "UTC"))])

Step = Callable[[Path], object]
"""A step that makes the next version of a table."""


def insert(row_id: int, **more: str) -> Step:
    row = pa.Table.from_pylist(
        [{"id": row_id, **more}], pa.schema([("id", pa.int32()), *((n, pa.string()) for n in more)])
    )
    return lambda table: write_deltalake(table, row, mode="append")


def add_note(table: Path) -> None:
    DeltaTable(table).alter.add_columns([Field("note", PrimitiveType("string"))])


def switch_feed(table: Path, on: str) -> None:
    DeltaTable(table).alter.set_table_properties({FEED: on})


def write_versions(table: Path, *steps: Step) -> None:
    """Create a table with a row, which is version 1, and take each step, which makes a version each."""
    DeltaTable.create(table, pa.schema([("id", pa.int32())]), configuration={FEED: "true"})
    for step in (insert(1), *steps):
        step(table)


def test_a_restore_that_drops_a_column_is_read_from_the_files_that_changed(spark: SparkSession, tmp_path: Path) -> None:
    restore = f"RESTORE TABLE {sql_path(tmp_path)} TO VERSION AS OF 1"
    write_versions(tmp_path, add_note, insert(2, note="a"), lambda _: spark.sql(restore), insert(3))
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 2)
    with pytest.raises(PySparkException, match="INCOMPATIBLE_DATA_SCHEMA"):
        feed.load(str(tmp_path)).collect()
    assert read_changes(spark, tmp_path, 1, 5) is None
    assert read_removed(spark, tmp_path, 1, 5) is None
    assert read_appended(spark, tmp_path, 1, 5) is None
    changed = read_changed_rows(spark, tmp_path, 1, 5)
    assert changed is not None
    assert [row.id for row in changed.collect()] == [3]
    later = read_changes(spark, tmp_path, 4, 5)
    assert later is not None
    assert [row.id for row in later.collect()] == [3], "the feed since then"


def test_the_feed_has_the_days_and_times_of_the_table(spark: SparkSession, tmp_path: Path) -> None:
    days = [date(1, 1, 1), *(date(1582, 10, day) for day in (4, 5, 14, 15)), date(9999, 12, 31)]
    times = [datetime.combine(day, time(23, 59, 59, 999999), UTC) for day in days]
    DeltaTable.create(tmp_path, DAYS_AND_TIMES, configuration={FEED: "true"})
    write_deltalake(tmp_path, pa.table({"day": days, "at": times}, DAYS_AND_TIMES), mode="append")
    changes = read_changes(spark, tmp_path, 0, 1)
    assert changes is not None
    texts = [
        (str(row.day), row.at) for row in changes.selectExpr("day", "cast(at as string) AS at").sort("day").collect()
    ]
    assert texts == [(f"{day}", f"{day} 23:59:59.999999") for day in days]


def test_a_feed_that_was_switched_off_in_between_is_noticed(spark: SparkSession, tmp_path: Path) -> None:
    off, on = (partial(switch_feed, on=on) for on in ("false", "true"))
    write_versions(tmp_path, off, insert(2), on)
    assert read_changes(spark, tmp_path, 1, 4) is None
    changed = read_changed_rows(spark, tmp_path, 1, 4)
    assert changed is not None
    assert [row.id for row in changed.collect()] == [2]


def test_added_columns_are_in_the_feed(spark: SparkSession, tmp_path: Path) -> None:
    write_versions(tmp_path, add_note, insert(2, note="a"))
    changes = read_changes(spark, tmp_path, 1, 3)
    assert changes is not None
    assert [(row.id, row.note) for row in changes.collect()] == [(2, "a")]
