"""Compare a figure with the bounds of its rule, as Great Expectations does."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from spark_jobs.quality.rules.bounds import value_bound
from spark_jobs.quality.verdicts.rule_result import RuleResult, figure_result

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Evaluate: TypeAlias = Callable[[Any], RuleResult]


class NotFusedError(Exception):
    """Raised when figures do not suffice to evaluate a rule: Great Expectations evaluates it instead."""


def whole_between(arguments: Mapping[str, Any]) -> Evaluate:
    """Return a function that compares a count with the bounds.

    Raises:
        NotFusedError: a bound is not a whole number, or there is no bound.
    """
    return _between(arguments, _whole)


def number_between(arguments: Mapping[str, Any]) -> Evaluate:
    """Return a function that compares a number with the bounds; no number and NaN fail.

    Raises:
        NotFusedError: a bound is not a number, or there is no bound.
    """
    return _between(arguments, _number)


def date_between(arguments: Mapping[str, Any]) -> Evaluate:
    """Return a function that compares a date with the bounds.

    Raises:
        NotFusedError: a bound is not a date, or there is no bound.
    """
    return _between(arguments, _date)


def moment_between(arguments: Mapping[str, Any]) -> Evaluate:
    """Return a function that compares a moment, in microseconds since 1970; its result shows UTC without the zone.

    Raises:
        NotFusedError: a bound is neither a date nor a moment, or there is no bound.
    """
    compare = _between(arguments, _moment)

    def evaluate(micros: int | None) -> RuleResult:
        return compare(None if micros is None else (EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None))

    return evaluate


def _between(arguments: Mapping[str, Any], parse: Callable[[Any], Any]) -> Evaluate:
    low, high = (None if arguments.get(key) is None else parse(arguments[key]) for key in ("min_value", "max_value"))
    if low is None and high is None:
        raise NotFusedError("there is no bound")
    strict_min, strict_max = (bool(arguments.get(key)) for key in ("strict_min", "strict_max"))

    def evaluate(figure: Any) -> RuleResult:
        # A bound is a double, and 0.100 exactly is less than the double 0.1.
        value = float(figure) if isinstance(figure, Decimal) else figure
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return figure_result(False, None)
        is_above = low is None or (value > low if strict_min else value >= low)
        is_below = high is None or (value < high if strict_max else value <= high)
        return figure_result(is_above and is_below, value)

    return evaluate


def _whole(bound: Any) -> int:
    if isinstance(bound, int) and not isinstance(bound, bool):
        return bound
    raise NotFusedError(f"{bound!r} is not a whole number")


def _number(bound: Any) -> float:
    if isinstance(bound, int | float) and not isinstance(bound, bool):
        return float(bound)
    raise NotFusedError(f"{bound!r} is not a number")


def _date(bound: Any) -> date:
    day = _time(bound)
    if isinstance(day, datetime):
        raise NotFusedError(f"{bound!r} is not a date")
    return day


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
