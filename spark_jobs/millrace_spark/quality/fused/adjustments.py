"""Adjust the figures of an earlier version by the rows that changed since, instead of reading all rows again.

A figure is adjusted only if the result is exactly that of a pass over all rows; otherwise it is left out.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import partial
from typing import Any, TypeAlias

Facts: TypeAlias = Mapping[str, Any]
"""Figure -> value; None for the extreme or the sum of no values."""

EXACT_BELOW = 2**53
"""A double holds every whole number below this, so that whole numbers add up to the same sum in any order."""

_DIGITS = 38
"""The digits of Spark's longest decimal."""

_UNKNOWN = object()
"""An adjusted figure that does not follow from the changed rows."""


@dataclass(frozen=True)
class Adjustment:
    """The way in which a figure follows from an earlier one and the rows that changed since.

    Attributes:
        adjust: returns the figure for the earlier one, that of the removed rows, and that of the added rows.
        magnitude: the figure with the sum of the absolute values, if that tells whether the order of the rows matters.
        column: for an extreme that the statistics of data files state exactly, the column.
        is_least: whether it is a least value.
    """

    adjust: Callable[[Any, Any, Any], Any]
    magnitude: str = ""
    column: str = ""
    is_least: bool = False

    def is_exact(self, facts: Facts) -> bool:
        """Return whether the rows have the same sum in any order."""
        if not self.magnitude:
            return True
        return self.magnitude in facts and (facts[self.magnitude] or 0) < EXACT_BELOW


@dataclass(frozen=True)
class CommitFigures:
    """The figures of the rows that one commit removed, and of those that it added; an updated row is in both."""

    removed: Facts
    added: Facts


def adjust_figures(adjustments: Mapping[str, Adjustment], before: Facts, commits: Iterable[CommitFigures]) -> Facts:
    """Return the figures after some commits, without those that do not follow from them.

    Args:
        adjustments: figure -> how it is adjusted.
        before: the figures before the commits, as far as they are known.
        commits: the commits, in their order.

    >>> commits = [CommitFigures(removed={"least": 3}, added={"rows": 2, "least": 5})]
    >>> adjust_figures({"rows": TOTAL, "least": LEAST}, {"rows": 4, "least": 1}, commits)
    {'rows': 6, 'least': 1}
    >>> adjust_figures({"rows": TOTAL, "least": LEAST}, {"rows": 4, "least": 3}, commits)
    {'rows': 6}
    """
    known = _exact(adjustments, {name: before[name] for name in adjustments if name in before})
    for commit in commits:
        adjusted = {
            name: adjustments[name].adjust(value, commit.removed.get(name), commit.added.get(name))
            for name, value in known.items()
        }
        known = _exact(adjustments, {name: value for name, value in adjusted.items() if value is not _UNKNOWN})
    return known


def differing(carried: Facts, counted: Facts) -> Mapping[str, tuple[Any, Any]]:
    """Return the figures that differ from those of all rows: figure -> the value here, and that of all rows.

    >>> nan = float("nan")
    >>> differing({"rows": 2, "sum": 0.0, "least": nan}, {"rows": 3, "sum": None, "least": nan, "greatest": 1})
    {'rows': (2, 3)}
    """
    pairs = {name: (value, counted[name]) for name, value in carried.items()}
    return {name: (one, other) for name, (one, other) in pairs.items() if not _is_same(one, other)}


def _is_same(one: Any, other: Any) -> bool:
    # Without values a sum is None or 0: the rules look at the number of values, which is compared, too.
    return (one or 0) == (other or 0) or (one != one and other != other)


def _exact(adjustments: Mapping[str, Adjustment], facts: Facts) -> Facts:
    return {name: value for name, value in facts.items() if adjustments[name].is_exact(facts)}


def _total(before: Any, removed: Any, added: Any) -> Any:
    with localcontext(prec=2 * _DIGITS):
        total = (before or 0) - (removed or 0) + (added or 0)
    # Spark refuses a sum with more digits: the pass over all rows says so.
    is_too_long = isinstance(total, Decimal) and len(total.as_tuple().digits) > _DIGITS
    return _UNKNOWN if is_too_long else total


def _extreme(is_as_extreme: Callable[[Any, Any], bool], before: Any, removed: Any, added: Any) -> Any:
    """Return the extreme of the rows that are left and of the added rows; None stands for no value.

    `is_as_extreme` says of the first of two values whether it is as extreme as the second, or more.
    """

    def reaches(value: Any, other: Any) -> bool:
        return value is not None and is_as_extreme(_order(value), _order(other))

    if before is None:
        return added if removed is None else _UNKNOWN
    if removed is not None and not reaches(before, removed):
        return _UNKNOWN  # No row of the table can have had this value.
    if reaches(added, before):
        return added
    return _UNKNOWN if reaches(removed, before) else before


def _order(value: Any) -> tuple[bool, Any]:
    """Return the key of Spark's order, in which NaN is greater than every number."""
    is_nan = value != value
    return (is_nan, 0) if is_nan else (False, value)


TOTAL = Adjustment(_total)
"""The adjustment of a count, and of a sum of decimals."""

LEAST = Adjustment(partial(_extreme, operator.le), is_least=True)
GREATEST = Adjustment(partial(_extreme, operator.ge))
"""The adjustments of a least and of a greatest value. They fail if the rows that had it were removed."""


def total_within(magnitude: str) -> Adjustment:
    """Return the adjustment of a sum as long as the `magnitude` is below `EXACT_BELOW`.

    The magnitude has the same adjustment. It is the sum of the absolute values as whole numbers: of doubles, so that
    they add up exactly, or of parts of the greatest decimal, so that they do not overflow.
    """
    return Adjustment(_total, magnitude)
