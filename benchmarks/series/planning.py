"""Series 5: `lakehouse plan` of a table that has loaded 100,000 files, against one that has loaded 10,000; and a first
load of 100,000 files, the last of whose batches are planned against the first."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.cost import Cost, FailedRunError, measure
from benchmarks.loaded_files import environment, lay_out
from benchmarks.result import Result
from benchmarks.rounds import Side, interleaved

MANY, FEW = 100_000, 10_000
TARGET = MANY / FEW
"""The largest good ratio: the cost grows at most as the number of files."""
BATCHES = 10
TARGET_OF_LAST = 1.2
"""The last batches of a first load cost as much as the first ones, apart from the larger ledger."""


def run(bench: Bench) -> list[Result]:
    """Plan both tables, which have nothing new; then load one from the beginning.

    Raises:
        FailedRunError: the plan finds something new, or the load fails.
    """
    return [_all_loaded(bench), _first_load(bench)]


def _all_loaded(bench: Bench) -> Result:
    names = {number: f"{number:,} files" for number in (MANY, FEW)}
    for number in names:
        bench.console.print(f"  laying out and recording {number:,} files")
        folder = bench.fresh("planning", str(number))
        # In a process of its own: the peak memory of a process begins with that of the one which starts it.
        made = [sys.executable, "-m", "benchmarks.loaded_files", str(folder), str(number)]
        measure(made, _environment(), bench.folder / "logs" / f"planning.make.{number}.log")
    sides = interleaved(
        {name: partial(_plan, bench, number) for number, name in names.items()},
        bench.rounds,
        bench.print_cost,
    )
    facts = {f"peak memory, {name}": f"{sides[name].peak_mb:.0f} MB" for name in names.values()}
    return Result("planning when all files are loaded", names[MANY], names[FEW], sides, TARGET, facts)


def _first_load(bench: Bench) -> Result:
    bench.console.print(f"  laying out {MANY:,} files and loading them, batch after batch")
    folder, log = bench.fresh("planning", "first"), bench.folder / "logs" / "planning.first.log"
    lay_out(folder, MANY)
    measure([sys.executable, "-m", "benchmarks.loading.first_load", str(folder)], _environment(), log)
    costs = tuple(Cost(**json.loads(line)) for line in log.read_text().splitlines())
    first, last = f"first {BATCHES} batches", f"last {BATCHES} batches"
    sides = {first: Side(costs[:BATCHES]), last: Side(costs[-BATCHES:])}
    facts = {f"peak memory until the {name}": f"{side.peak_mb:.0f} MB" for name, side in sides.items()}
    title = f"planning a batch of a first load, {len(costs)} batches"
    return Result(title, last, first, sides, TARGET_OF_LAST, facts)


def _environment() -> dict[str, str]:
    """Return the environment in which Python finds the benchmarks."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def _plan(bench: Bench, number: int, _round: int) -> Cost:
    log = bench.folder / "logs" / f"planning.{number}.log"
    command = [str(Path(sys.executable).parent / "lakehouse"), "plan", "--interval", "2013-01-01"]
    environ = {**os.environ, **environment(bench.folder / "planning" / str(number)), "COLUMNS": "200"}
    cost = measure(command, environ, log).whole
    if f"0 new of {number} files" not in log.read_text():
        raise FailedRunError(f"the plan does not say that nothing is new: {log}")
    return cost
