"""Conditions on a column of events, checked on each event, or on the minimum and maximum of many events."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Among:
    """The condition that a value is one of `values`; null never is."""

    values: frozenset[Any]

    @cached_property
    def _ascending(self) -> list[Any]:
        return sorted(self.values)

    def may_meet(self, least: Any, greatest: Any) -> bool:
        """Whether one of `values` lies between these two; `greatest` may be only the start of a text."""
        index = bisect_left(self._ascending, least)
        return index < len(self._ascending) and _reaches(greatest, self._ascending[index])

    def matches(self, column: pa.Array) -> pa.Array:
        """Return for each value of the column whether it is one of `values`."""
        return pc.is_in(column, pa.array(self.values, column.type))


@dataclass(frozen=True)
class Span:
    """The condition that a value is at least `least` and at most `greatest`; None is no limit, null never meets it.

    >>> Span(3, 5).may_meet(5, 9), Span(3, 5).may_meet(6, 9), Span(least=3).may_meet(6, 9)
    (True, False, True)
    """

    least: Any = None
    greatest: Any = None

    def may_meet(self, least: Any, greatest: Any) -> bool:
        """Whether a value between these two may lie in the span; `greatest` may be only the start of a text."""
        return (self.least is None or _reaches(greatest, self.least)) and (
            self.greatest is None or least <= self.greatest
        )

    def matches(self, column: pa.Array) -> pa.Array:
        """Return for each value of the column whether it lies in the span."""
        is_met = column.is_valid()
        if self.least is not None:
            is_met = pc.and_(is_met, pc.greater_equal(column, pa.scalar(self.least, column.type)))
        if self.greatest is not None:
            is_met = pc.and_(is_met, pc.less_equal(column, pa.scalar(self.greatest, column.type)))
        return is_met


Condition: TypeAlias = Among | Span


def may_meet(conditions: Mapping[str, Condition], ends: Mapping[str, tuple[Any, Any]]) -> bool:
    """Whether an event may meet all conditions.

    `ends` is column -> its minimum and maximum; a column that is missing may have any value.
    """
    return all(condition.may_meet(*ends[column]) for column, condition in conditions.items() if column in ends)


def _reaches(greatest: Any, value: Any) -> bool:
    return bool(greatest >= value) or (isinstance(value, str) and value.startswith(greatest))
