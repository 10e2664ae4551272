"""Rounds in which the peers run in turn, with medians and ratios."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.cost import Cost

Run = Callable[[int], Cost]
"""Do a side's work for a round, given its number; return the cost."""


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
    """The ratio of one side to the other, round by round."""

    median: float
    least: float
    greatest: float


def interleaved(
    sides: Mapping[str, Run], rounds: int, ended: Callable[[int, str, Cost], None], uncounted: int = 1
) -> dict[str, Side]:
    """Run the sides in turn, A-B-A-B; the first rounds do not count.

    Args:
        sides: name -> work.
        rounds: the number of counted rounds.
        ended: called after each run with the round (0 if uncounted), the side and its cost.
        uncounted: the number of uncounted rounds; 0 if each run is long and warms up itself.
    """
    costs: dict[str, list[Cost]] = {name: [] for name in sides}
    for number in range(1 - uncounted, rounds + 1):
        for name, run in sides.items():
            cost = run(number)
            costs[name].append(cost)
            ended(number, name, cost)
    return {name: Side(tuple(of_side[uncounted:])) for name, of_side in costs.items()}


def cpu_ratio(side: Side, other: Side) -> Ratio:
    """Return CPU-seconds of `side` divided by those of `other`, round by round.

    >>> cpu_ratio(Side((Cost(1, 2), Cost(1, 3))), Side((Cost(1, 4), Cost(1, 4))))
    Ratio(median=0.625, least=0.5, greatest=0.75)
    """
    return _ratio([cost.cpu_s for cost in side.costs], [cost.cpu_s for cost in other.costs])


def wall_ratio(side: Side, other: Side) -> Ratio:
    """Return wall times of `side` divided by those of `other`, round by round."""
    return _ratio([cost.wall_s for cost in side.costs], [cost.wall_s for cost in other.costs])


def _ratio(of: Sequence[float], to: Sequence[float]) -> Ratio:
    ratios = [cost / other for cost, other in zip(of, to, strict=True)]
    return Ratio(median(ratios), min(ratios), max(ratios))
