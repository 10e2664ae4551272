"""The table properties that a spec may set, on real Delta."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from millrace.specs.checks.properties import WRITER_FEATURES, check_properties
from millrace_spark.delta_io.tables import TableShape, ensure_table

WRITERS_ONLY = {f"delta.feature.{name}": "supported" for name in WRITER_FEATURES} | {
    "delta.enableInCommitTimestamps": "true",
    "delta.enableMaterializePartitionColumnsFeature": "true",
    "delta.enableRowTracking": "true",
    "delta.minReaderVersion": "1",
    "delta.minWriterVersion": "7",
    "delta.setTransactionRetentionDuration": "interval 900 days",
}


@pytest.mark.parametrize(
    ("properties", "writer_version"),
    [(WRITERS_ONLY, 7), ({"delta.feature.checkConstraints": "supported", "delta.minWriterVersion": "4"}, 4)],
)
def test_all_that_a_spec_may_set_leaves_the_reader_version_at_one_and_is_set_once(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], writer_version: int
) -> None:
    assert list(check_properties({"table": "gold.a", "delta": properties})) == []
    shape = TableShape({"id": "int"}, properties=properties)

    for _ in range(2):
        assert ensure_table(lambda _: nullcontext(spark), tmp_path, shape) == [], "nothing differs from the spec"
        table = DeltaTable(str(tmp_path))
        protocol = table.protocol()
        assert (table.version(), protocol.min_reader_version, protocol.min_writer_version) == (0, 1, writer_version)
    if writer_version == 7:
        assert set(protocol.writer_features or ()) == set(WRITER_FEATURES)
