"""Series: does a refresh of gold choose the cheaper way? 24 cases, or 24 others, each computed both ways."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from benchmarks.bench import Bench
from benchmarks.cost import measure, read_noted
from benchmarks.peers import Millrace
from benchmarks.refreshing.choices import CASES, INCREMENTAL, WHOLE, Case, case_name
from benchmarks.result import Result
from benchmarks.rounds import Side
from embedded.clone import CLONE
from millrace.control.planning.refresh_cost import RefreshCost

TARGET_SHARE = 0.875
TIE = 1.15
"""A choice that costs at most so many times the other way is right, too."""

_PATIENCE_S = 2 * 3600.0


def run(bench: Bench, cases: Sequence[Case] = CASES) -> list[Result]:
    """Compute all cases in one session, both ways in turn."""
    folder = bench.fresh("gold-choice")
    folder.mkdir(parents=True)
    work, costs, facts = folder / "work.json", folder / "costs.jsonl", folder / "facts.jsonl"
    work.write_text(json.dumps({"folder": str(folder / "lakes"), "cases": cases, "rounds": bench.rounds}))
    millrace = Millrace(large_load=True)
    script = CLONE / "benchmarks" / "refreshing" / "choices.py"
    command = millrace.application(script, *map(str, (work, costs, facts)))
    environment = {**millrace.environment(), "PYTHONPATH": str(CLONE)}
    measure(command, environment, bench.folder / "logs" / "gold-choice.log", patience_s=_PATIENCE_S)
    noted = read_noted(costs)
    known = {fact["name"]: fact for fact in map(json.loads, facts.read_text().splitlines())}
    numbers = range(2, bench.rounds + 2)
    results, right = [], 0
    for case in cases:
        name = case_name(*case)
        sides = {
            way: Side(tuple(noted[f"{name}/{number}/{way}"] for number in numbers)) for way in (INCREMENTAL, WHOLE)
        }
        chosen = choice(known[f"{name}/{numbers[-1]}"])
        other = WHOLE if chosen == INCREMENTAL else INCREMENTAL
        is_right = sides[chosen].cpu_s <= TIE * sides[other].cpu_s
        right += is_right
        results.append(Result(name, INCREMENTAL, WHOLE, sides, facts={"chosen": chosen, "right": is_right}))
    results[-1].facts["right choices"] = f"{right} of {len(cases)}, target {TARGET_SHARE:.1%}"
    return results


def choice(known: Mapping[str, int]) -> str:
    """Return the way that a refresh chooses with these figures of its report."""
    sizes, touched = RefreshCost(known["sources"], known["table"], known["changes"]), known["values"]
    cost = replace(sizes, read=known["read"], rewritten=known["rewritten"], values=touched, ranges=known["ranges"])
    return WHOLE if cost.is_whole_cheaper else INCREMENTAL
