"""The growth of a cost with the size of the table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import linear_regression


def exponent(costs: Mapping[int, float], fixed: float = 0.0) -> float | None:
    """Return the slope of a line through the logarithms: 0 for a constant cost, 1 for a proportional one.

    Args:
        costs: rows of the table -> cost.
        fixed: what the same costs on a table of next to nothing; it is taken off every cost.

    Returns:
        None where taking it off leaves nothing.

    >>> exponent({1_000: 5.0, 10_000: 50.0, 100_000: 500.0})
    1.0
    >>> exponent({1_000: 25.0, 10_000: 70.0}, fixed=20.0)
    1.0
    """
    left = {rows: cost - fixed for rows, cost in costs.items()}
    if min(left.values()) <= 0:
        return None
    slope = linear_regression([math.log(rows) for rows in left], [math.log(cost) for cost in left.values()]).slope
    return round(slope, 6)


def geometric_mean(ratios: list[float]) -> float:
    """Return the geometric mean, which averages ratios."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))
