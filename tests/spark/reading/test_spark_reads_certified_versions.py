"""Spark reads certified versions: as a frame, and by the views of its script."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from include.control.gates.gates import Gates
from include.control.views.folder import SCRIPTS
from include.paths import LakehousePaths
from millrace import certified
from tests.support.reading.certified_lake import orders, write_version

TABLE = "silver.order"


def test_a_frame_and_a_view_have_the_certified_rows(spark: SparkSession, lake: Path) -> None:
    paths = LakehousePaths(lake / "läke `x`")
    write_version(paths, orders("a"), table=TABLE)
    write_version(paths, orders("bad", "worse"), table=TABLE, passed=False)
    view = Gates(paths).views([TABLE])[0][TABLE]
    assert view is not None
    for statement in SCRIPTS["spark"]([view]).split(";\n")[:-1]:
        spark.sql(statement)
    try:
        assert [tuple(row) for row in spark.sql("FROM silver.order").collect()] == [("a", 0)]
    finally:
        spark.sql("DROP DATABASE silver CASCADE")
    assert [tuple(row) for row in certified(TABLE, paths.root).spark(spark).collect()] == [("a", 0)]
