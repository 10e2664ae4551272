"""Series: gold tables of 1 and 10 million orders after a change of the newest 1 %, against computing them whole."""

from __future__ import annotations

import json

from benchmarks.bench import Bench
from benchmarks.cost import measure, read_noted
from benchmarks.merging.growth import exponent
from benchmarks.peers import Millrace
from benchmarks.refreshing.growth import LIMIT, MILLRACE, WHOLE
from benchmarks.refreshing.peers import QUERIES
from benchmarks.result import Result
from benchmarks.rounds import Side
from embedded.clone import CLONE

TARGET, TARGET_EXPONENT = 0.15, 0.05
_PATIENCE_S = 3 * 3600.0


def run(bench: Bench, sizes: tuple[int, ...] = (10**6, 10**7)) -> list[Result]:
    """Refresh all tables of all sizes in one session, by the three sides in turn."""
    folder = bench.fresh("gold-growth")
    folder.mkdir(parents=True)
    work, costs = folder / "work.json", folder / "costs.jsonl"
    work.write_text(json.dumps({"folder": str(folder / "lakes"), "sizes": sizes, "rounds": bench.rounds}))
    millrace = Millrace(large_load=True)
    command = millrace.application(CLONE / "benchmarks" / "refreshing" / "growth.py", str(work), str(costs))
    environment = {**millrace.environment(), "PYTHONPATH": str(CLONE)}
    measure(command, environment, bench.folder / "logs" / "gold-growth.log", patience_s=_PATIENCE_S)
    noted = read_noted(costs)
    results = []
    for table in QUERIES:
        by_rows = {
            rows: {
                side: Side(tuple(noted[f"{table} {rows}/{number}/{side}"] for number in range(2, bench.rounds + 2)))
                for side in (MILLRACE, WHOLE, LIMIT)
            }
            for rows in sizes
        }
        for rows, sides in by_rows.items():
            target = TARGET if rows == max(sizes) else None
            facts = {f"{LIMIT}, CPU-s": round(sides[LIMIT].cpu_s, 2)}
            results.append(Result(f"{table}, {rows:,} orders", MILLRACE, WHOLE, sides, target, facts))
        growth = exponent({rows: sides[MILLRACE].cpu_s for rows, sides in by_rows.items()})
        results[-1].facts["exponent of CPU-seconds"] = f"{growth}, target {TARGET_EXPONENT}"
    return results
