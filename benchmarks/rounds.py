"""Rounds in which the peers run in turn, and what is said of them: medians and ratios."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.cost import Cost

Run = Callable[[int], Cost]
"""Does a side's work for the round of that number, and says what it cost."""


@dataclass(frozen=True)
class Side:
    """The counted rounds of one side."""

    costs: tuple[Cost, ...]

    @property
    def cpu_s(self) -> float:
        """The median of the CPU-seconds."""
        return median(cost.cpu_s for cost in self.costs)

    @property
    def wall_s(self) -> float:
        """The median of the wall time."""
        return median(cost.wall_s for cost in self.costs)

    @property
    def peak_mb(self) -> float:
        """The largest resident memory of any single process of any round."""
        return max(cost.peak_mb for cost in self.costs)


@dataclass(frozen=True)
class Ratio:
    """One side against the other, round by round."""

    median: float
    least: float
    greatest: float


def interleaved(
    sides: Mapping[str, Run], rounds: int, ended: Callable[[int, str, Cost], None], uncounted: int = 1
) -> dict[str, Side]:
    """Run the sides in turn, A-B-A-B, a round more than asked for, and throw the first away.

    Args:
        sides: name -> what to run.
        rounds: how many rounds count.
        ended: told of each run: the round, 0 for one that does not count, the side, and its cost.
        uncounted: how many rounds do not count; none where each run is long and warms up by itself.
    """
    costs: dict[str, list[Cost]] = {name: [] for name in sides}
    for number in range(1 - uncounted, rounds + 1):
        for name, run in sides.items():
            cost = run(number)
            costs[name].append(cost)
            ended(number, name, cost)
    return {name: Side(tuple(found[uncounted:])) for name, found in costs.items()}


def cpu_ratio(side: Side, other: Side) -> Ratio:
    """CPU-seconds of `side` over those of `other`, each round against its own.

    >>> cpu_ratio(Side((Cost(1, 2), Cost(1, 3))), Side((Cost(1, 4), Cost(1, 4))))
    Ratio(median=0.625, least=0.5, greatest=0.75)
    """
    return _ratio([cost.cpu_s for cost in side.costs], [cost.cpu_s for cost in other.costs])


def wall_ratio(side: Side, other: Side) -> Ratio:
    """Wall time of `side` over that of `other`, each round against its own."""
    return _ratio([cost.wall_s for cost in side.costs], [cost.wall_s for cost in other.costs])


def _ratio(of: Sequence[float], to: Sequence[float]) -> Ratio:
    found = [one / other for one, other in zip(of, to, strict=True)]
    return Ratio(median(found), min(found), max(found))
