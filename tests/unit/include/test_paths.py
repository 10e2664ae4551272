"""Where things lie: every table in a folder of its own."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from include.paths import LakehousePaths, RunPaths

PATHS = LakehousePaths(Path("/lake"))
RUNS = RunPaths(Path("/lake/_millrace"))


def test_each_thing_has_its_place_under_the_root() -> None:
    assert PATHS.table("gold.route_performance_daily") == Path("/lake/gold/route_performance_daily")
    assert PATHS.quarantine("bronze.flight_events") == Path("/lake/bronze_quarantine/flight_events")
    assert PATHS.tombstones("silver.flights", "5b0e") == Path("/lake/silver_tombstones/flights/5b0e")
    assert PATHS.ops("batches") == Path("/lake/ops/batches")
    assert PATHS.leases == Path("/lake/_millrace/leases")


def test_no_two_tables_share_a_folder_and_none_lies_within_another() -> None:
    tables = [f"{layer}.{name}" for layer, name in product(("bronze", "silver", "gold"), ("flights", "planes"))]
    folders = [place(table) for place in (PATHS.table, PATHS.quarantine) for table in tables]
    folders += [PATHS.tombstones(table, "5b0e") for table in tables if table.startswith("silver.")]
    folders += [PATHS.ops(name) for name in ("batches", "files", "gates")] + [
        PATHS.leases,
        RUNS.reports,
        RUNS.driver_logs,
        RUNS.data_docs,
    ]
    assert len(set(folders)) == len(folders) == 21
    assert not [(one, other) for one, other in product(folders, folders) if one in other.parents]
