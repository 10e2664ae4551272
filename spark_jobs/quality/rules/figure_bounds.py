"""Whether a figure lies between the bounds of its rule, as Great Expectations says it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from spark_jobs.quality.rules.bounds import value_bound
from spark_jobs.quality.verdicts.judgement import Judgement, observed

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Judge: TypeAlias = Callable[[Any], Judgement]


class NotFusedError(Exception):
    """Raised when a rule cannot be judged by figures alone: Great Expectations has the last word on it."""


def whole_between(arguments: Mapping[str, Any]) -> Judge:
    """Judges a count.

    Raises:
        NotFusedError: a bound is no whole number, or there is none.
    """
    return _between(arguments, _whole)


def number_between(arguments: Mapping[str, Any]) -> Judge:
    """Judges a number; none at all, and NaN, lie nowhere.

    Raises:
        NotFusedError: a bound is no number, or there is none.
    """
    return _between(arguments, _number)


def date_between(arguments: Mapping[str, Any]) -> Judge:
    """Judges a date.

    Raises:
        NotFusedError: a bound is no date, or there is none.
    """
    return _between(arguments, _date)


def moment_between(arguments: Mapping[str, Any]) -> Judge:
    """Judges a moment, given in microseconds since 1970; it is observed as one of UTC, without its zone.

    Raises:
        NotFusedError: a bound is neither a date nor a moment, or there is none.
    """
    judge = _between(arguments, _moment)

    def judged(micros: int | None) -> Judgement:
        return judge(None if micros is None else (EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None))

    return judged


def _between(arguments: Mapping[str, Any], read: Callable[[Any], Any]) -> Judge:
    low, high = (None if arguments.get(key) is None else read(arguments[key]) for key in ("min_value", "max_value"))
    if low is None and high is None:
        raise NotFusedError("there is no bound")
    strict_min, strict_max = (bool(arguments.get(key)) for key in ("strict_min", "strict_max"))

    def judged(figure: Any) -> Judgement:
        # A bound is a double, and 0.100 exactly is less than the double 0.1.
        value = float(figure) if isinstance(figure, Decimal) else figure
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return observed(False, None)
        is_above = low is None or (value > low if strict_min else value >= low)
        is_below = high is None or (value < high if strict_max else value <= high)
        return observed(is_above and is_below, value)

    return judged


def _whole(bound: Any) -> int:
    if isinstance(bound, int) and not isinstance(bound, bool):
        return bound
    raise NotFusedError(f"{bound!r} is no whole number")


def _number(bound: Any) -> float:
    if isinstance(bound, int | float) and not isinstance(bound, bool):
        return float(bound)
    raise NotFusedError(f"{bound!r} is no number")


def _date(bound: Any) -> date:
    found = _time(bound)
    if isinstance(found, datetime):
        raise NotFusedError(f"{bound!r} is no date")
    return found


def _moment(bound: Any) -> datetime:
    found = _time(bound)
    moment = found if isinstance(found, datetime) else datetime.combine(found, time(), UTC)
    return moment.astimezone(UTC).replace(tzinfo=None)


def _time(bound: Any) -> date:
    try:
        found = value_bound(bound)
    except ValueError as error:
        raise NotFusedError(str(error)) from error
    if isinstance(found, date):
        return found
    raise NotFusedError(f"{bound!r} is neither a date nor a moment")
