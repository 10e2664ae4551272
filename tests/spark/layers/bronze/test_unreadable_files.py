"""The files that make a batch fail are found although Spark's error names none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from millrace.control.landing.inspection import inspect
from millrace.control.landing.on_disk import LocalLanding
from millrace.control.log.batch import FileFact
from millrace_spark.delta_io.landing_reads import read_landing
from millrace_spark.layers.bronze.unreadable_files import failing_files
from tests.support.documents.specs import bronze_spec
from tests.support.storage.landing_files import parquet_of


def test_of_an_error_of_columns_every_file_of_its_kind_and_no_other(spark: SparkSession, tmp_path: Path) -> None:
    spec = bronze_spec(source={"landing": "orders", "format": "parquet"}, columns={"order_id": {}})
    landing = LocalLanding(str(tmp_path))
    like_names = parquet_of([{"order_id": "o2", "parcel": {"size": 1, "Size": 2}}])
    contents = {"a": parquet_of([{"order_id": "o1"}]), "b": like_names, "c": like_names}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    listed = [FileFact(path=name, size=len(content), mtime_ns=1) for name, content in contents.items()]
    files = tuple(inspect(file, landing, spec) for file in listed)
    assert [file.defect for file in files] == [""] * 3

    with pytest.raises(AnalysisException, match="COLUMN_ALREADY_EXISTS") as failed:
        read_landing(spark, spec, landing, files).collect()
    found = failing_files(failed.value, files, lambda some: read_landing(spark, spec, landing, some))
    assert {file.path: cause.partition("]")[0] for file, cause in found.items()} == dict.fromkeys(
        "bc", "[COLUMN_ALREADY_EXISTS"
    )


def test_of_an_error_of_values_the_file_that_fails_alone(spark: SparkSession, tmp_path: Path) -> None:
    files = tuple(FileFact(path=str(number), size=1, mtime_ns=1) for number in range(11))
    for file in files:
        (tmp_path / file.path).write_text(json.dumps({"amount": int(file.path) - 7}))
    reads: list[int] = []

    def read(some: tuple[FileFact, ...]) -> DataFrame:
        reads.append(len(some))
        rows = spark.read.schema("amount int").json([str(tmp_path / file.path) for file in some])
        return rows.selectExpr("1 / amount AS ratio")

    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO") as failed:
        read(files).collect()
    ((file, cause),) = failing_files(failed.value, files, read).items()
    assert (file.path, cause.partition("]")[0]) == ("7", "[DIVIDE_BY_ZERO")
    assert sum(reads) <= 3 * len(files), reads
    assert failing_files(failed.value, files[:7], read) == {}
    assert failing_files(RuntimeError("No space left on device"), files, read) == {}
