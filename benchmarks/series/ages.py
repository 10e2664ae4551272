"""Series 12: a lakehouse whose tables have 10,000 batches, gate results and files each, against one with 100; and the
listing of 1,000 tables."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.aged_lake import day, environment, make
from benchmarks.bench import Bench
from benchmarks.cost import Cost, measure
from benchmarks.result import Result
from benchmarks.rounds import interleaved
from benchmarks.series import control_plane, requests
from millrace.control.log.delta_log import latest_version
from millrace.paths import LakehousePaths

OLD, YOUNG = 10_000, 100
TARGET = 1.2
LISTED_S = {"tables": 2.0, "health": 10.0}
"""Command -> the CPU-seconds of its listing of a thousand tables, start-up of Python included."""

MOST_FILES = 1000
"""Files of the ledger's seven tables together: data files, commits of a day and checkpoints."""

CHAINS = 334
"""The number of chains of three tables."""


def run(bench: Bench) -> list[Result]:
    """Plan, list and record a batch; then list a thousand tables.

    Raises:
        FailedRunError: a command fails, or a batch is not certified.
    """
    return [*without_spark(bench), control_plane.run(bench), requests.run(bench)]


def without_spark(bench: Bench) -> list[Result]:
    """What needs no Spark.

    Raises:
        FailedRunError: a command fails, or a batch is not certified.
    """
    lakes = {f"{number:,} batches": _lake(bench, str(number), number) for number in (OLD, YOUNG)}
    old, young = lakes
    results = []
    for title, command in _COMMANDS.items():
        runs = {name: partial(_measured, bench, command, lake) for name, lake in lakes.items()}
        sides = interleaved(runs, bench.rounds, bench.print_cost)
        results.append(Result(title, old, young, sides, TARGET, {"files of ops": _files(lakes)}))
    many = _lake(bench, "many", 2, CHAINS)
    for title, most in LISTED_S.items():
        runs = {"1,002 tables": partial(_measured, bench, _COMMANDS[title], many)}
        sides = interleaved(runs, bench.rounds, bench.print_cost)
        listed = sides["1,002 tables"].cpu_s
        facts = {"CPU-seconds": f"{listed:.2f}; {most} is {'met' if listed <= most else 'missed'}"}
        results.append(Result(f"{title}, of 1,002", "1,002 tables", "1,002 tables", sides, facts=facts))
    return results


def _lake(bench: Bench, name: str, number: int, chains: int = 1) -> Path:
    bench.console.print(f"  making {3 * chains} tables of {number:,} batches")
    folder = bench.fresh("ages", name)
    make(folder, number, chains)
    return folder


def _plan(lake: Path) -> list[str]:
    newest = latest_version(LakehousePaths(lake / "root").table("bronze.a0"))
    return [_LAKEHOUSE, "plan", "--interval", f"{day(newest).start:%Y-%m-%d}"]


def _measured(bench: Bench, command: Callable[[Path], list[str]], lake: Path, _round: int) -> Cost:
    environ = {**os.environ, **environment(lake), "PYTHONPATH": str(Path(__file__).parents[2])}
    return measure(command(lake), environ, bench.folder / "logs" / "ages.log").whole


_LAKEHOUSE = str(Path(sys.executable).parent / "lakehouse")
_BATCH = [sys.executable, "-m", "benchmarks.aged_lake", "batch"]
_COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "plan": _plan,
    "gate show": lambda _lake: [_LAKEHOUSE, "gate", "show", "silver.a0"],
    "tables": lambda _lake: [_LAKEHOUSE, "tables"],
    "health": lambda _lake: [_LAKEHOUSE, "health"],
    "one batch of three tables, without Spark": lambda lake: [*_BATCH, str(lake)],
}


def _files(lakes: dict[str, Path]) -> str:
    """Return the number of the ledger's files, which must be small at any age."""
    files = {name: sum(path.is_file() for path in (lake / "root" / "ops").rglob("*")) for name, lake in lakes.items()}
    most = max(files.values())
    verdict = "met" if most <= MOST_FILES else "missed"
    return ", ".join(f"{count} at {name}" for name, count in files.items()) + f"; at most {MOST_FILES} is {verdict}"
