"""Series: the goodput of more writers of one table against fewer; plain MERGEs show the session's capacity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.bench import Bench
from benchmarks.contention.heat import Heat, Keys, Score, Strategy
from benchmarks.contention.session import scores_of
from benchmarks.result import Result
from benchmarks.rounds import Side

SECONDS = 30.0
WARM_UP = 16
"""Uncounted heats of eight writers at first: the JVM compiles for some ten minutes, on the core that one writer leaves
free and two do not."""


@dataclass(frozen=True)
class Pair:
    """Two numbers of writers, and the smallest good ratio of their goodputs, if there is a target."""

    strategy: Strategy
    keys: Keys
    fewer: int
    more: int
    bar: float | None = None


PAIRS = (
    Pair(Strategy.MILLRACE, Keys.DISJOINT, 1, 2, 1.7),
    Pair(Strategy.BACK_OFF, Keys.DISJOINT, 1, 2),
    Pair(Strategy.MILLRACE, Keys.DISJOINT, 2, 8, 0.9),
    Pair(Strategy.MILLRACE, Keys.OVERLAP, 1, 8, 0.9),
)
Which = tuple[Strategy, Keys, int]
"""One heat of a round."""


def run(bench: Bench) -> list[Result]:
    """Run every number of writers in turn, in one session that is warm at the first round."""
    heats = [_heat(Strategy.MILLRACE, Keys.DISJOINT, 8, 0) for _ in range(WARM_UP)]
    heats += [_heat(*which, number) for number in range(1, bench.rounds + 1) for which in _which()]
    found: dict[Which, list[Score]] = {which: [] for which in _which()}
    for heat, score in scores_of(bench, "goodput", heats):
        found[heat.strategy, heat.keys, heat.writers].append(score)
    return [_result(pair, *(found[which] for which in _both(pair))) for pair in PAIRS]


def _which() -> list[Which]:
    """Return the heats of a round, each once."""
    return list(dict.fromkeys(which for pair in PAIRS for which in _both(pair)))


def _both(pair: Pair) -> tuple[Which, Which]:
    return (pair.strategy, pair.keys, pair.fewer), (pair.strategy, pair.keys, pair.more)


def _heat(strategy: Strategy, keys: Keys, writers: int, number: int) -> Heat:
    return Heat(strategy, keys, writers, optimize=False, seconds=SECONDS, number=number)


def _result(pair: Pair, fewer: list[Score], more: list[Score]) -> Result:
    sides = {_writers(pair.fewer): _side(fewer), _writers(pair.more): _side(more)}
    facts = {_writers(pair.fewer): _facts(fewer), _writers(pair.more): _facts(more)}
    of, against = _writers(pair.more), _writers(pair.fewer)
    target = None if pair.bar is None else round(1 / pair.bar, 3)
    return Result(f"{pair.strategy}, {pair.keys}, a commit", of, against, sides, wall_target=target, facts=facts)


def _writers(number: int) -> str:
    return f"{number} writer{'s' if number > 1 else ''}"


def _side(scores: list[Score]) -> Side:
    return Side(tuple(score.a_commit for score in scores))


def _facts(scores: list[Score]) -> dict[str, Any]:
    return {
        "commits a minute": [round(60 / score.a_commit.wall_s) for score in scores],
        "cores busy": [round(score.cpu_s / score.wall_s, 2) for score in scores],
        "conflicts a commit": round(sum(score.conflicts for score in scores) / sum(score.all for score in scores), 2),
        "least over most commits of a writer": round(min(score.fairness for score in scores), 2),
        "lost": sum(score.lost for score in scores),
    }
