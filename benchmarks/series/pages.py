"""Series 14: the pages of the web UI about 1,002 tables with 10,020 batches, and about tables with 10,000 each."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from statistics import median, quantiles

from benchmarks.aged_lake import make
from benchmarks.bench import Bench
from benchmarks.cost import measure
from benchmarks.result import Result
from benchmarks.rounds import Side
from include.settings import PROJECT

CHAINS, BATCHES = 334, 10
"""Chains of three tables, and batches of each table."""

OLD = 10_000
TIMES = 40
TARGET_MS = 300

_LIST = ("/lakehouse/tables", "/lakehouse/tables?q=a33&sort=rows")
_TABS = ("", "/lineage", "/versions", "/versions?upto=5000", "/quality", "/quarantine", "/storage", "/spec")
_TABLE = (*(f"/lakehouse/tables/silver.a0{tab}" for tab in _TABS), "/lakehouse/tables/bronze.a0/files")


def run(bench: Bench) -> list[Result]:
    """Ask for each page many times.

    Raises:
        FailedRunError: a page is not answered.
    """
    return [
        _measured(bench, f"{3 * CHAINS:,} tables", CHAINS, BATCHES, (*_LIST, *_TABLE)),
        _measured(bench, f"{OLD:,} batches of a table", 1, OLD, _TABLE),
    ]


def _measured(bench: Bench, name: str, chains: int, batches: int, pages: tuple[str, ...]) -> Result:
    bench.console.print(f"  making {3 * chains} tables of {batches:,} batches")
    lake, log = bench.fresh("pages", str(chains)), bench.folder / "logs" / f"pages.{chains}.log"
    make(lake, batches, chains)
    command = [sys.executable, "-m", "benchmarks.web.page_times", str(lake), str(TIMES), *pages]
    path = os.pathsep.join((str(PROJECT), str(PROJECT / "plugins")))
    cost = measure(command, {**os.environ, "PYTHONPATH": path}, log).whole
    times: dict[str, list[tuple[float, float]]] = json.loads(Path(log).read_text().splitlines()[-1])
    facts = {page: _summary(of_page) for page, of_page in times.items()}
    return Result(f"pages, {name}", name, name, {name: Side((cost,))}, facts=facts)


def _summary(times: list[tuple[float, float]]) -> str:
    """Return first, median and 95th percentile in milliseconds, with CPU; the first request reads everything."""
    (walls, first_wall), (cpus, first_cpu) = (([each[at] for each in times[1:]], times[0][at]) for at in (0, 1))
    p95 = quantiles(walls, n=20)[-1]
    verdict = "met" if p95 <= TARGET_MS else "missed"
    wall = f"first {first_wall:.0f} ms, p50 {median(walls):.0f}, p95 {p95:.0f}; {TARGET_MS} is {verdict}"
    return f"{wall}; CPU: first {first_cpu:.0f} ms, p50 {median(cpus):.0f}, p95 {quantiles(cpus, n=20)[-1]:.0f}"
