"""What Delta itself does with the log of a table that is held."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from embedded.spark.server import SparkServer
from millrace.control.log.delta_log import commit_versions
from millrace.control.maintenance.holding import hold_tables
from millrace.control.ops_tables import OpsTables
from millrace.paths import LakehousePaths
from millrace_spark.delta_io.tables import sql_path
from millrace_spark.runtime.session import own_session
from tests.support.ledger.delta_tables import append, create_table

ORDERS = "silver.orders"


@pytest.mark.slow
@pytest.mark.parametrize("is_held", [False, True])
def test_a_checkpoint_of_spark_cleans_the_log_of_a_table_unless_it_is_held(
    server: SparkServer, tmp_path: Path, is_held: bool
) -> None:
    ops = OpsTables(LakehousePaths(tmp_path))
    path = Path(str(ops.paths.table(ORDERS)))
    create_table(path, logRetentionDuration="interval 7 days", checkpointInterval="10")
    old = [append(path) for _ in range(3)]
    DeltaTable(str(path)).create_checkpoint()
    for file in (path / "_delta_log").iterdir():
        # Delta cleans nothing of a log whose files have one and the same time.
        long_ago = file.stat().st_mtime - timedelta(days=40).total_seconds()
        os.utime(file, (long_ago, long_ago))
    if is_held:
        hold_tables("case-17", [ORDERS], said_by="ann", why="court order", run_id="test", ops=ops)
    with own_session({}) as session:
        while DeltaTable(str(path)).version() < 10:
            session.sql(f"INSERT INTO {sql_path(path)} VALUES (1)").collect()
    assert (path / "_delta_log" / f"{10:020d}.checkpoint.parquet").exists()
    left = [version for version in (0, *old[:-1]) if version in commit_versions(path)]
    assert left == ([0, 1, 2] if is_held else [])
    if is_held:
        assert DeltaTable(str(path), version=1).to_pyarrow_table().num_rows == 1
