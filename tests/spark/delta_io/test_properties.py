"""The table properties that a spec may set, and clustering, which it may not, on real Delta."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from pyspark.sql import SparkSession

from millrace.contracts.spec.table_features import RESTORABLE, WRITER_FEATURES
from millrace.specs.checks.properties import check_properties
from millrace_spark.delta_io.tables import TableShape, ensure_table
from tests.support.reading.foreign_libraries import by_dataset, by_duckdb, by_polars, by_query_builder
from tests.support.reading.predicates import Predicate

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


@pytest.mark.parametrize("feature", WRITER_FEATURES)
def test_delta_rs_commits_to_tables_with_the_features_that_a_restore_allows(
    spark: SparkSession, tmp_path: Path, feature: str
) -> None:
    properties = {f"delta.feature.{feature}": "supported"}
    ensure_table(lambda _: nullcontext(spark), tmp_path, TableShape({"id": "int"}, properties=properties))
    allowed = nullcontext() if feature in RESTORABLE else pytest.raises(CommitFailedError, match="Unsupported table")
    with allowed:
        append_with_delta_rs(tmp_path)


def append_with_delta_rs(path: Path) -> None:
    write_deltalake(str(path), pa.table({"id": pa.array([1], pa.int32())}), mode="append")


def test_a_clustered_table_can_be_read_but_not_written_by_delta_rs_for_ever(
    spark: SparkSession, tmp_path: Path
) -> None:
    """ADR 62: once this fails, clustering is worth another look."""
    table = f"delta.`{tmp_path}`"
    ensure_table(lambda _: nullcontext(spark), tmp_path, TableShape({"id": "int"}))
    append_with_delta_rs(tmp_path)
    spark.sql(f"ALTER TABLE {table} CLUSTER BY (id)").collect()
    spark.sql(f"OPTIMIZE {table}").collect()
    protocol = DeltaTable(str(tmp_path)).protocol()
    assert protocol.min_reader_version == 1
    assert {"clustering", "domainMetadata"} <= set(protocol.writer_features or ())
    version, one = DeltaTable(str(tmp_path)).version(), Predicate("id", "int", "=", ("1",))
    for reader in (by_duckdb, by_polars, by_dataset, by_query_builder):
        assert reader(str(tmp_path), version)(one) == [1]
    for write in (append_with_delta_rs, restore_with_delta_rs):
        with pytest.raises(CommitFailedError, match="ClusteredTable"):
            write(tmp_path)
    spark.sql(f"ALTER TABLE {table} CLUSTER BY NONE").collect()
    with pytest.raises(Exception, match="DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"):
        spark.sql(f"ALTER TABLE {table} DROP FEATURE clustering").collect()


def restore_with_delta_rs(path: Path) -> None:
    DeltaTable(str(path)).restore(0)
