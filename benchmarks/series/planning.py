"""Series 5: `lakehouse plan` of a table that has loaded 100,000 files, against one that has loaded 10,000."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.cost import Cost, FailedRunError, measure
from benchmarks.loaded_files import environment, make
from benchmarks.result import Result
from benchmarks.rounds import interleaved

MANY, FEW = 100_000, 10_000
TARGET = MANY / FEW
"""As many times the cost as there are files, at most."""


def run(bench: Bench) -> list[Result]:
    """Plan both tables; nothing is new in either.

    Raises:
        FailedRunError: the plan finds something new.
    """
    names = {number: f"{number:,} files" for number in (MANY, FEW)}
    for number in names:
        bench.console.print(f"  laying out and recording {number:,} files")
        make(bench.fresh("planning", str(number)), number)
    sides = interleaved(
        {name: lambda _, number=number: _plan(bench, number) for number, name in names.items()},
        bench.rounds,
        bench.ended,
    )
    facts = {f"peak memory, {name}": f"{sides[name].peak_mb:.0f} MB" for name in names.values()}
    return [Result("planning when all files are loaded", names[MANY], names[FEW], sides, TARGET, facts)]


def _plan(bench: Bench, number: int) -> Cost:
    log = bench.folder / "logs" / f"planning.{number}.log"
    command = [str(Path(sys.executable).parent / "lakehouse"), "plan", "--interval", "2013-01-01"]
    known = {**os.environ, **environment(bench.folder / "planning" / str(number)), "COLUMNS": "200"}
    cost = measure(command, known, log).whole
    if f"0 new of {number} files" not in log.read_text():
        raise FailedRunError(f"the plan does not say that nothing is new: {log}")
    return cost
