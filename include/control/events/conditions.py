"""What columns of events must hold: asked of events, and of the least and greatest values that are stated of many."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc


class Condition(Protocol):
    """What a column of an event must hold; null never meets it."""

    def may_meet(self, least: Any, greatest: Any) -> bool:
        """Whether a value between these two may meet it. A text that is stated as the greatest may be cut short."""

    def met_by(self, column: pa.Array) -> pa.Array:
        """Of each value: whether it meets the condition."""


@dataclass(frozen=True)
class Among:
    """The column holds one of some values."""

    values: frozenset[Any]

    @cached_property
    def _upward(self) -> list[Any]:
        return sorted(self.values)

    def may_meet(self, least: Any, greatest: Any) -> bool:
        """Whether one of the values lies between these two."""
        place = bisect_left(self._upward, least)
        return place < len(self._upward) and _reaches(greatest, self._upward[place])

    def met_by(self, column: pa.Array) -> pa.Array:
        """Of each value: whether it is one of them."""
        return pc.is_in(column, pa.array(self.values, column.type))


@dataclass(frozen=True)
class Span:
    """The column holds a value from `least` to `greatest`, both included; None is no end.

    >>> Span(3, 5).may_meet(5, 9), Span(3, 5).may_meet(6, 9), Span(least=3).may_meet(6, 9)
    (True, False, True)
    """

    least: Any = None
    greatest: Any = None

    def may_meet(self, least: Any, greatest: Any) -> bool:
        """Whether a value between these two may lie in the span."""
        return (self.least is None or _reaches(greatest, self.least)) and (
            self.greatest is None or least <= self.greatest
        )

    def met_by(self, column: pa.Array) -> pa.Array:
        """Of each value: whether it lies in the span."""
        found = column.is_valid()
        if self.least is not None:
            found = pc.and_(found, pc.greater_equal(column, pa.scalar(self.least, column.type)))
        if self.greatest is not None:
            found = pc.and_(found, pc.less_equal(column, pa.scalar(self.greatest, column.type)))
        return found


def may_meet(conditions: Mapping[str, Condition], ends: Mapping[str, tuple[Any, Any]]) -> bool:
    """Whether an event may meet all conditions.

    Args:
        conditions: column -> what it must hold.
        ends: column -> the least and the greatest value that events hold; of a column that lacks it may hold any.
    """
    return all(condition.may_meet(*ends[column]) for column, condition in conditions.items() if column in ends)


def _reaches(greatest: Any, value: Any) -> bool:
    return bool(greatest >= value) or (isinstance(value, str) and value.startswith(greatest))
