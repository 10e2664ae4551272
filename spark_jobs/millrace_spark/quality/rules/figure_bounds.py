"""Compare a figure with the bounds of its rule, as Great Expectations does."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from millrace_spark.quality.rules.bounds import value_bound
from millrace_spark.quality.verdicts.rule_result import RuleResult

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Evaluate: TypeAlias = Callable[[Any], RuleResult]


class NotFusedError(Exception):
    """Raised when figures do not suffice to evaluate a rule: Great Expectations evaluates it instead."""


def between(arguments: Mapping[str, Any], parse: Callable[[Any], Any]) -> Evaluate:
    """Return a function that compares a figure with the bounds, which `parse` reads; no figure and NaN fail.

    Raises:
        NotFusedError: a bound is not of the kind that `parse` reads, or there is no bound.
    """
    low, high = (None if arguments.get(key) is None else parse(arguments[key]) for key in ("min_value", "max_value"))
    if low is None and high is None:
        raise NotFusedError("there is no bound")
    strict_min, strict_max = (bool(arguments.get(key)) for key in ("strict_min", "strict_max"))

    def evaluate(figure: Any) -> RuleResult:
        # A bound is a double, and 0.100 exactly is less than the double 0.1.
        value = float(figure) if isinstance(figure, Decimal) else figure
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return RuleResult(False, {"observed_value": None})
        is_above = low is None or (value > low if strict_min else value >= low)
        is_below = high is None or (value < high if strict_max else value <= high)
        return RuleResult(is_above and is_below, {"observed_value": value})

    return evaluate


def whole(bound: Any) -> int:
    """Return a bound of a count; raise NotFusedError if it is not a whole number."""
    if isinstance(bound, int) and not isinstance(bound, bool):
        return bound
    raise NotFusedError(f"{bound!r} is not a whole number")


def number(bound: Any) -> float:
    """Return a bound of a number; raise NotFusedError if it is not a number."""
    if isinstance(bound, int | float) and not isinstance(bound, bool):
        return float(bound)
    raise NotFusedError(f"{bound!r} is not a number")


def day(bound: Any) -> date:
    """Return a bound of a date; raise NotFusedError if it is not a date."""
    value = _time(bound)
    if isinstance(value, datetime):
        raise NotFusedError(f"{bound!r} is not a date")
    return value


def moment_between(arguments: Mapping[str, Any]) -> Evaluate:
    """Return `between` for a moment, in microseconds since 1970; its result shows UTC without the zone."""
    compare = between(arguments, _moment)

    def evaluate(micros: int | None) -> RuleResult:
        return compare(None if micros is None else (EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None))

    return evaluate


def _moment(bound: Any) -> datetime:
    given = _time(bound)
    moment = given if isinstance(given, datetime) else datetime.combine(given, time(), UTC)
    return moment.astimezone(UTC).replace(tzinfo=None)


def _time(bound: Any) -> date:
    try:
        value = value_bound(bound)
    except ValueError as error:
        raise NotFusedError(str(error)) from error
    if isinstance(value, date):
        return value
    raise NotFusedError(f"{bound!r} is neither a date nor a moment")
