"""Series 23: small commits with maintenance between them; OPTIMIZE against a sort by DuckDB, and what it leaves."""

from __future__ import annotations

import json
from dataclasses import replace

from benchmarks.bench import Bench
from benchmarks.cost import measure, read_noted
from benchmarks.peers import Millrace
from benchmarks.result import Result
from benchmarks.rounds import Side
from benchmarks.upkeep.in_one_session import COMMIT, MAINTENANCE, ORDERED, PACKED, SORT
from embedded.clone import CLONE

COMMITS, _ENDS = 1000, 50
GROWTH, SHARE, AGAINST_SORT = 1.2, 0.15, 2.0
_PATIENCE_S = 2 * 3600.0


def run(bench: Bench, commits: int = COMMITS) -> list[Result]:
    """Run both parts in one session."""
    folder = bench.fresh("upkeep")
    folder.mkdir(parents=True)
    work, costs, facts = folder / "work.json", folder / "costs.jsonl", folder / "facts.json"
    work.write_text(json.dumps({"folder": str(folder), "commits": commits, "rounds": bench.rounds}))
    millrace = Millrace(large_load=True)
    script = CLONE / "benchmarks" / "upkeep" / "in_one_session.py"
    command = millrace.application(script, *map(str, (work, costs, facts)))
    environment = {**millrace.environment(), "PYTHONPATH": str(CLONE)}
    measure(command, environment, bench.folder / "logs" / "upkeep.log", patience_s=_PATIENCE_S)
    noted, found = read_noted(costs), json.loads(facts.read_text())
    each = [noted[f"{COMMIT}/{number}"] for number in range(commits)]
    upkeep = sum(cost.cpu_s for name, cost in noted.items() if name.startswith(MAINTENANCE))
    share = upkeep / (upkeep + sum(cost.cpu_s for cost in each))
    # The very first ones warm up the JVM: the last would look better against them.
    ends = {"last": Side(tuple(each[-_ENDS:])), "first": Side(tuple(each[_ENDS : 2 * _ENDS]))}
    growth = Result(f"{commits:,} small commits: the last against the first", "last", "first", ends, GROWTH)
    growth = replace(growth, facts={"share of maintenance": f"{share:.3f}, at most {SHARE}", **found})
    rounds = range(1, bench.rounds + 1)
    sides = {kind: Side(tuple(noted[f"{kind}/{at}"] for at in rounds)) for kind in (PACKED, ORDERED, SORT)}
    return [growth, *(Result(f"OPTIMIZE, {kind}", kind, SORT, sides, AGAINST_SORT) for kind in (PACKED, ORDERED))]
