"""Series 14: the pages of the web UI about 1,002 tables, three of which have 10,000 batches, and one 100,000 waiting
rows; and what they do to the API server that serves them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from statistics import median, quantiles

from benchmarks.aged_lake import DOMAIN, day, land, make
from benchmarks.bench import Bench
from benchmarks.cost import measure
from benchmarks.result import Result
from benchmarks.rounds import Side
from benchmarks.web.refused_rows import refuse, row_id
from embedded.clone import CLONE
from millrace.catalog import load_catalog
from millrace.paths import LakehousePaths

CHAINS, BATCHES, OLD = 334, 10, 10_000
"""Chains of three tables, and batches of each table; of those of the first chain."""

WAITING = 100_000
TIMES = 40
TARGET_MS = 300

_TABLES = "/lakehouse/tables"
_BRONZE, _SILVER = f"{_TABLES}/bronze.a0", f"{_TABLES}/silver.a0"
_MONTH = range(OLD - 15, OLD + 16)
"""The days of a backfill plan; one batch is of each day, so that half of their files are loaded."""

_CHAIN = "".join(f"&table={layer}.a0" for layer in ("bronze", "silver", "gold"))
_PLAN = f"/lakehouse/backfill-plan/{DOMAIN}?first={day(_MONTH[0]).label}&last={day(_MONTH[-1]).label}{_CHAIN}"
PAGES = {
    "Lakehouse": _TABLES,
    "Lakehouse, searched and ordered by rows": f"{_TABLES}?q=a33&sort=rows",
    "Overview": _SILVER,
    "Versions": f"{_SILVER}/versions",
    "Versions from 5,000 downward": f"{_SILVER}/versions?upto=5000",
    "Quality": f"{_SILVER}/quality",
    "Files": f"{_BRONZE}/files",
    "Files of a day": f"{_BRONZE}/files?day=2000-01-01",
    "Quarantine": f"{_BRONZE}/quarantine",
    "Quarantine, the last rows": f"{_BRONZE}/quarantine?after={row_id(26)}",
    "Quarantine, one reason": f"{_BRONZE}/quarantine?reason=c3",
    "Quarantine, discarded rows": f"{_BRONZE}/quarantine?status=discarded",
    "Quarantine, one row": f"{_BRONZE}/quarantine?row={row_id(WAITING // 2 + 1)}",
    "Quarantine without rows": f"{_SILVER}/quarantine",
    "Storage": f"{_SILVER}/storage",
    "Lineage": f"{_SILVER}/lineage",
    "Lineage of all tables": "/lakehouse/lineage",
    "Lineage of a domain": "/lakehouse/lineage?domain=bench",
    "Lineage around a table": "/lakehouse/lineage?table=silver.a0",
    "Lineage of a column": "/lakehouse/lineage?table=silver.a0&column=n",
    "Spec": f"{_SILVER}/spec",
    "Run of all tables": "/lakehouse/runs/bench/run%205",
    "Run of old tables": "/lakehouse/runs/bench/run%205000",
    "Backfill plan, its form": f"/lakehouse/backfill-plan/{DOMAIN}",
    "Backfill plan, a month of three tables": _PLAN,
}
"""Name -> address of each page that is measured."""


def run(bench: Bench) -> list[Result]:
    """Ask for each page many times.

    Raises:
        FailedRunError: a page is not answered.
    """
    name = f"{3 * CHAINS:,} tables, {OLD:,} batches"
    bench.console.print(f"  making {name}")
    lake, log = bench.fresh("pages"), bench.folder / "logs" / "pages.log"
    make(lake, BATCHES, CHAINS, OLD)
    bronze = load_catalog(lake / "tables").specs["bronze.a0"]
    for seq in _MONTH:
        land(lake, bronze, seq)
    refuse(LakehousePaths(lake / "root"), "bronze.a0", WAITING)
    command = [sys.executable, "-m", "benchmarks.web.page_times", str(lake), str(TIMES), *PAGES.values()]
    path = os.pathsep.join((str(CLONE), str(CLONE / "plugins")))
    cost = measure(command, {**os.environ, "PYTHONPATH": path}, log).whole
    times = json.loads(Path(log).read_text().splitlines()[-1])
    facts = {page: _summary(times["pages"][path], times["cpu"][path]) for page, path in PAGES.items()}
    health = {f"health endpoint beside {who}": _health_summary(of) for who, of in times["health"].items()}
    return [Result(f"pages, {name}", name, name, {name: Side((cost,))}, facts={**facts, **health})]


def _summary(milliseconds: list[float], cpu: float) -> str:
    """Return first, median and 95th percentile, and the CPU; the first request reads everything."""
    first, *others = milliseconds
    p95 = quantiles(others, n=20)[-1]
    verdict = "met" if p95 <= TARGET_MS else "missed"
    return f"first {first:.0f} ms, p50 {median(others):.0f}, p95 {p95:.0f}; {TARGET_MS} is {verdict}; CPU {cpu:.0f} ms"


def _health_summary(milliseconds: list[float]) -> str:
    p95 = quantiles(milliseconds, n=20)[-1]
    return (
        f"p50 {median(milliseconds):.0f} ms, p95 {p95:.0f}, max {max(milliseconds):.0f} ({len(milliseconds)} requests)"
    )
