"""Series: one, two, four and eight writers of one table, compared with plain MERGEs with back-off and in turns."""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from typing import Any

from benchmarks.bench import Bench
from benchmarks.contention.heat import Heat, Keys, Score, Strategy
from benchmarks.contention.session import scores_of
from benchmarks.result import Result
from benchmarks.rounds import Side

WRITERS = (1, 2, 4, 8)
SCENARIOS = ((Keys.DISJOINT, False), (Keys.TURNS, False), (Keys.OVERLAP, False), (Keys.OVERLAP, True))
SECONDS = 20.0
TARGET = 1.1
"""The largest good ratio of a commit's cost to that of a plain MERGE in turns."""


def run(bench: Bench) -> list[Result]:
    """Run all heats in one session, the strategies of a scenario one after another."""
    heats = [heat for number in range(bench.rounds + 1) for heat in _heats(number)]
    found: dict[str, dict[Strategy, list[Score]]] = defaultdict(lambda: defaultdict(list))
    for heat, score in scores_of(bench, "writers", heats):
        found[heat.scenario][heat.strategy].append(score)
    return [_result(scenario, of) for scenario, of in found.items()]


def _heats(number: int) -> list[Heat]:
    """Return the heats of a round; in the uncounted one only those with most writers, to warm up the session."""
    return [
        Heat(strategy, keys, writers, optimize, SECONDS, number)
        for (keys, optimize), writers in product(SCENARIOS, WRITERS if number else WRITERS[-1:])
        for strategy in Strategy
    ]


def _result(scenario: str, of: dict[Strategy, list[Score]]) -> Result:
    sides = {str(strategy): Side(tuple(score.a_commit for score in scores)) for strategy, scores in of.items()}
    facts = {str(strategy): _facts(scores) for strategy, scores in of.items()}
    return Result(f"{scenario}, a commit", Strategy.MILLRACE, Strategy.QUEUE, sides, TARGET, facts)


def _facts(scores: list[Score]) -> dict[str, Any]:
    commits, wall_s = sum(score.all for score in scores), sum(score.wall_s for score in scores)
    return {
        "commits a minute": round(60 * commits / wall_s, 1),
        "conflicts a commit": round(sum(score.conflicts for score in scores) / commits, 2),
        "least over most commits of a writer": round(min(score.fairness for score in scores), 2),
        "OPTIMIZEs": sum(score.optimized for score in scores),
        "lost": sum(score.lost for score in scores),
    }
