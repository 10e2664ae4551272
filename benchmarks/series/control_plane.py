"""Series 12, with Spark: what a run of three tables costs in Python, the command and its driver together, beside a warm
Spark server; new, and where the ledger has 10,000 batches, verdicts and landing files of each table."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

from benchmarks.aged_lake import add_history, day, describe, environment, land
from benchmarks.bench import Bench
from benchmarks.cost import Cost, measure
from benchmarks.result import Result
from benchmarks.rounds import interleaved
from embedded.clone import CLONE
from embedded.spark.running import running_server
from embedded.spark.server import SparkServer
from millrace.catalog import load_catalog

OLD, NEW = "10,000 batches", "new"
HISTORY = {OLD: 10_000, NEW: 0}
LIMIT_S = 3.0
TARGET = 1.2


def run(bench: Bench) -> Result:
    """Run day after day of two lakehouses by one server, each day by a command of its own.

    Raises:
        FailedRunError: a run fails.
    """
    lakes = {name: bench.fresh("control-plane", str(number)) for name, number in HISTORY.items()}
    with running_server(bench.fresh("control-plane", "spark")) as server:
        for name, number in HISTORY.items():
            describe(lakes[name])
            _run(bench, lakes[name], server, 0)
            add_history(lakes[name], number)
        runs = {name: partial(_next, bench, lake, server) for name, lake in lakes.items()}
        sides = interleaved(runs, bench.rounds, bench.print_cost)
    spent = max(side.cpu_s for side in sides.values())
    facts = {"CPU-seconds of Python": f"{spent:.2f}; {LIMIT_S} is {'met' if spent <= LIMIT_S else 'missed'}"}
    return Result("a run of three tables, Python beside a Spark server", OLD, NEW, sides, TARGET, facts)


def _next(bench: Bench, lake: Path, server: SparkServer, number: int) -> Cost:
    return _run(bench, lake, server, number + 1)


def _run(bench: Bench, lake: Path, server: SparkServer, number: int) -> Cost:
    for spec in load_catalog(lake / "tables").specs.values():
        land(lake, spec, number)
    command = [str(Path(sys.executable).parent / "lakehouse"), "run", "--interval", f"{day(number).start:%Y-%m-%d}"]
    known = {**os.environ, **environment(lake), **server.client_env(), "PYTHONPATH": str(CLONE)}
    return measure(command, known, bench.folder / "logs" / "control-plane.log").whole
