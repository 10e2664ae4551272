"""Where things lie: every table in a folder of its own."""

from __future__ import annotations

from pathlib import Path

from include.paths import LakehousePaths, RunPaths

PATHS = LakehousePaths(Path("/lake"))


def test_each_thing_has_its_place_under_the_root() -> None:
    assert PATHS.table("gold.route_performance_daily") == Path("/lake/gold/route_performance_daily")
    assert PATHS.quarantine("bronze.flight_events") == Path("/lake/bronze_quarantine/flight_events")
    assert PATHS.tombstones("silver.flights", "5b0e") == Path("/lake/silver_tombstones/flights/5b0e")
    assert PATHS.ops("batches") == Path("/lake/ops/batches")
    assert PATHS.leases == Path("/lake/_millrace/leases")
    of_runs = RunPaths(Path("/runs"))
    places = [of_runs.reports, of_runs.driver_logs, of_runs.data_docs]
    assert places == [Path("/runs/reports"), Path("/runs/driver_logs"), Path("/runs/data_docs")]
