"""Series: forty table rules by what changed, after batches of 10,000 rows into 1 and 10 million rows."""

from __future__ import annotations

import json

from benchmarks.bench import Bench
from benchmarks.cost import Cost, measure, read_noted
from benchmarks.gates.in_one_session import BY_ALL_ROWS, BY_CHANGE, MERGE, RECENT, UNIFORM
from benchmarks.merging.growth import exponent
from benchmarks.peers import Millrace
from benchmarks.result import Result
from benchmarks.rounds import Side
from embedded.clone import CLONE

SHARE_OF_WRITE = 0.25
TARGET_EXPONENT = {RECENT: 0.1, UNIFORM: 0.3}
_PATIENCE_S = 2 * 3600.0

Case = tuple[int, str]
"""The rows of the table, and the orders of its batches."""


def run(
    bench: Bench, sizes: tuple[int, ...] = (10**6, 10**7), kinds: tuple[str, ...] = (RECENT, UNIFORM)
) -> list[Result]:
    """Measure the checks of all sizes in one session, in turn."""
    cases = [(rows, kind) for rows in sizes for kind in kinds]
    folder = bench.fresh("gate-growth")
    folder.mkdir(parents=True)
    work, costs = folder / "work.json", folder / "costs.jsonl"
    work.write_text(json.dumps({"folder": str(folder / "tables"), "cases": cases, "rounds": bench.rounds}))
    millrace = Millrace(large_load=True)
    command = millrace.application(CLONE / "benchmarks" / "gates" / "in_one_session.py", str(work), str(costs))
    environment = {**millrace.environment(), "PYTHONPATH": str(CLONE)}
    measure(command, environment, bench.folder / "logs" / "gate-growth.log", patience_s=_PATIENCE_S)
    noted = read_noted(costs)
    sides = {case: _sides(noted, case, bench.rounds) for case in cases}
    results = [_result(case, of_case) for case, of_case in sides.items()]
    for kind in kinds:
        growth = exponent({rows: sides[rows, kind][BY_CHANGE].cpu_s for rows in sizes})
        results[-1].facts[f"exponent of CPU-seconds by the change, {kind}"] = (
            f"{growth}, target {TARGET_EXPONENT[kind]}"
        )
    return results


def _sides(noted: dict[str, Cost], case: Case, rounds: int) -> dict[str, Side]:
    name = "{} {}".format(*case)
    return {
        side: Side(tuple(noted[f"{name}/{number}/{side}"] for number in range(2, rounds + 2)))
        for side in (MERGE, BY_CHANGE, BY_ALL_ROWS)
    }


def _result(case: Case, sides: dict[str, Side]) -> Result:
    title = f"40 rules after a MERGE of 10,000 rows, {case[1]} orders, into {case[0]:,}"
    facts = {"by all rows, CPU-s": round(sides[BY_ALL_ROWS].cpu_s, 2)}
    return Result(title, BY_CHANGE, MERGE, sides, SHARE_OF_WRITE, facts)
