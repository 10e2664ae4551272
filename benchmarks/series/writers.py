"""Series: one, two, four and eight writers of one table, against plain MERGEs with back-off, and one at a time."""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench
from benchmarks.contention.heat import Heat, Keys, Score, Strategy, read_scores, write_heats
from benchmarks.cost import Cost, measure
from benchmarks.peers import Millrace
from benchmarks.result import Result
from benchmarks.rounds import Side
from include.settings import PROJECT
from include.spark_conf import LARGE_LOAD

WRITERS = (1, 2, 4, 8)
SCENARIOS = ((Keys.DISJOINT, False), (Keys.TURNS, False), (Keys.OVERLAP, False), (Keys.OVERLAP, True))
SECONDS = 20.0
PATIENCE_S = 4 * 3600.0
TARGET = 1.1
"""A commit may cost so much of a plain MERGE's that waits its turn."""


def run(bench: Bench) -> list[Result]:
    """All heats in one session, the strategies of a scenario one after the other."""
    heats = [heat for number in range(bench.rounds + 1) for heat in _heats(number)]
    scores = _scores(bench, heats)
    found: dict[str, dict[Strategy, list[Score]]] = defaultdict(lambda: defaultdict(list))
    for heat, score in zip(heats, scores, strict=True):
        if score.lost:
            raise RuntimeError(f"{heat}: {score.lost} of {score.all} merges are not in the table")
        if heat.number:
            found[heat.scenario][heat.strategy].append(score)
    return [_result(scenario, of) for scenario, of in found.items()]


def _heats(number: int) -> list[Heat]:
    """A round; of the one that does not count only the heats with most writers, which warm up the session."""
    return [
        Heat(strategy, keys, writers, optimize, SECONDS, number)
        for (keys, optimize), writers in product(SCENARIOS, WRITERS if number else WRITERS[-1:])
        for strategy in Strategy
    ]


def _scores(bench: Bench, heats: list[Heat]) -> list[Score]:
    folder, millrace = bench.fresh("writers"), Millrace(text_bytes=LARGE_LOAD)
    plan, scores = write_heats(folder / "heats.jsonl", heats), folder / "scores.jsonl"
    script = PROJECT / "benchmarks" / "contention" / "run_heats.py"
    command = millrace.application(script, str(plan), str(scores), str(folder / "lake"))
    log: Path = bench.folder / "logs" / "writers.log"
    measure(command, millrace.environment(), log, patience_s=PATIENCE_S)
    return read_scores(scores)


def _result(scenario: str, of: dict[Strategy, list[Score]]) -> Result:
    sides = {str(strategy): Side(tuple(map(_a_commit, scores))) for strategy, scores in of.items()}
    facts = {str(strategy): _facts(scores) for strategy, scores in of.items()}
    return Result(f"{scenario}, a commit", Strategy.MILLRACE, Strategy.QUEUE, sides, TARGET, facts)


def _a_commit(score: Score) -> Cost:
    return Cost(score.wall_s / score.all, score.cpu_s / score.all)


def _facts(scores: list[Score]) -> dict[str, Any]:
    commits, wall_s = sum(score.all for score in scores), sum(score.wall_s for score in scores)
    return {
        "commits a minute": round(60 * commits / wall_s, 1),
        "conflicts a commit": round(sum(score.conflicts for score in scores) / commits, 2),
        "least over most commits of a writer": round(min(score.fairness for score in scores), 2),
        "OPTIMIZEs": sum(score.optimized for score in scores),
        "lost": sum(score.lost for score in scores),
    }
