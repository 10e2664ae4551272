"""Series 6: large files into bronze, against plain Spark, delta-rs and DuckDB."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.comparison import require_same_digest
from benchmarks.cost import Cost, FailedRunError, measure
from benchmarks.loading.flights import COLUMNS, DAY, TABLE, delivered
from benchmarks.peers import Millrace, Place
from benchmarks.result import Result
from benchmarks.rounds import interleaved
from embedded.clone import CLONE
from millrace.spark_conf import LARGE_LOAD

KINDS = ("parquet", "csv", "json")
MILLION = 1_000_000
PEERS = ("DuckDB", "plain Spark to Parquet", "plain Spark to Delta", "delta-rs")
TARGETS = {"DuckDB": 2.0, "plain Spark to Parquet": 1.1}
"""Peer -> the largest good ratio of CPU-seconds, for the load in which start-up counts least."""


def run_small(bench: Bench) -> list[Result]:
    """Measure a million rows of each format."""
    return [result for kind in KINDS for result in _load(bench, kind, MILLION, {})]


def run_large(bench: Bench) -> list[Result]:
    """Measure ten million rows of Parquet, for which start-up counts least."""
    return _load(bench, "parquet", 10 * MILLION, TARGETS)


def _load(bench: Bench, kind: str, rows: int, targets: Mapping[str, float]) -> list[Result]:
    folder = bench.folder / "load" / f"{kind}.{rows}"
    landing = delivered(folder, kind, rows)
    sides = interleaved(_sides(bench, folder, landing, kind), bench.rounds, bench.print_cost)
    _require_all(folder, rows)
    speeds = {f"rows per CPU-s, {name}": f"{rows / side.cpu_s:,.0f}" for name, side in sides.items()}
    measured = f"{rows:,} rows of {kind} into bronze, against"
    return [Result(f"{measured} {peer}", "Millrace", peer, sides, targets.get(peer), speeds) for peer in PEERS]


def _sides(bench: Bench, folder: Path, landing: Path, kind: str) -> Mapping[str, Callable[[int], Cost]]:
    source = str(landing / "flights" / f"date={DAY}")
    python, plain = Path(sys.executable), {**os.environ, "PYTHONPATH": str(CLONE), "TZ": "UTC"}
    spark = {**bench.naive.environment(), "PYTHONPATH": str(CLONE)}
    scripts = CLONE / "benchmarks" / "loading"
    out = {name: folder / "out" / name.replace(" ", "_") for name in PEERS}

    def script(name: str, environment: Mapping[str, str], *command: object) -> Callable[[int], Cost]:
        def run(number: int) -> Cost:
            bench.fresh(str(out[name]))
            out[name].parent.mkdir(parents=True, exist_ok=True)
            log = bench.folder / "logs" / f"load.{name}.{number}.log"
            return measure([str(part) for part in command], environment, log).whole

        return run

    def submit(form: str) -> list[object]:
        name = "plain Spark to Parquet" if form == "parquet" else "plain Spark to Delta"
        return [*bench.naive.submit(), scripts / "by_spark.py", source, kind, out[name], form]

    return {
        "Millrace": lambda number: _millrace(bench, folder, landing, number),
        "DuckDB": script("DuckDB", plain, python, scripts / "by_duckdb.py", source, kind, out["DuckDB"]),
        "plain Spark to Parquet": script("plain Spark to Parquet", spark, *submit("parquet")),
        "plain Spark to Delta": script("plain Spark to Delta", spark, *submit("delta")),
        "delta-rs": script("delta-rs", plain, python, scripts / "by_delta_rs.py", source, kind, out["delta-rs"]),
    }


def _millrace(bench: Bench, folder: Path, landing: Path, number: int) -> Cost:
    bench.fresh(str(folder / "lake"))
    place = Place(folder / "lake", landing)
    size = sum(file.stat().st_size for file in landing.rglob(f"date={DAY}/*"))
    peer = Millrace(tables=folder / "tables", large_load=size >= LARGE_LOAD)
    log = bench.folder / "logs" / f"load.Millrace.{number}.log"
    return measure(peer.writer(TABLE, place, DAY), peer.environment(), log).whole


def _require_all(folder: Path, rows: int) -> None:
    """Check that the sides wrote the same number of rows, and the same sum of each row's values."""
    out, lake = folder / "out", Place(folder / "lake", folder).table(TABLE)
    relations = {
        "Millrace": f"delta_scan('{lake}')",
        "DuckDB": f"read_parquet('{out / 'DuckDB'}')",
        "plain Spark to Parquet": f"read_parquet('{out / 'plain_Spark_to_Parquet'}/*.parquet')",
        "plain Spark to Delta": f"delta_scan('{out / 'plain_Spark_to_Delta'}')",
        "delta-rs": f"delta_scan('{out / 'delta-rs'}')",
    }
    if (found := require_same_digest(tuple(COLUMNS), relations)) != rows:
        raise FailedRunError(f"the sides loaded {found:,} rows instead of {rows:,}")
