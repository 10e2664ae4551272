"""Check that the warning band of an expectation is within the band of the rule itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime
from typing import Any

from include.contracts.spec.duration import AGE
from include.contracts.spec.expectation_arguments import ARGUMENTS, BAND_ARGUMENTS
from include.specs.problem import Defect, KeyPath, did_you_mean


def check_band(path: KeyPath, name: str, outer: Mapping[str, Any], warn: object) -> Iterator[Defect]:
    """Find arguments of a warning band that are not bounds, or are wider than those of the rule's own band, `outer`."""
    if not isinstance(warn, dict):
        return
    bounding = [argument for argument in ARGUMENTS[name].all_names if argument in BAND_ARGUMENTS]
    for argument, value in warn.items():
        if argument not in bounding:
            fix = did_you_mean(argument, bounding) if bounding else "leave the band out: this expectation has no bounds"
            yield Defect((*path, argument), "a band that warns states only bounds", value, fix)
        elif _is_wider(BAND_ARGUMENTS[argument], value, outer.get(argument)):
            message = "a band that warns must be within the rule's own band"
            word = "more" if BAND_ARGUMENTS[argument] > 0 else "less"
            yield Defect((*path, argument), message, value, f"give {outer[argument]!r} or {word}")


def check_bounds(path: KeyPath, arguments: Mapping[str, Any]) -> Iterator[Defect]:
    """Find bounds between which no value is possible, in the arguments of the expectation at `path`."""
    for lower, upper in (("min_value", "max_value"), ("min_percent", "max_percent")):
        low, high = _comparable(arguments.get(lower)), _comparable(arguments.get(upper))
        if low is None or high is None or _kind(low) is not _kind(high):
            continue
        if low > high or (low == high and (arguments.get("strict_min") or arguments.get("strict_max"))):
            message = f"nothing lies between {lower} {arguments[lower]!r} and this"
            fix = f"give more than {arguments[lower]!r}, or less as {lower}"
            yield Defect((*path, upper), message, arguments[upper], fix)


def _is_wider(direction: int, inner: Any, outer: Any) -> bool:
    """Whether the inner bound is on the wrong side of the outer bound; false if the two cannot be compared."""
    low, high = _comparable(inner), _comparable(outer)
    if direction == 0 or low is None or high is None or _kind(low) is not _kind(high):
        return False
    return bool(low < high if direction > 0 else low > high)


def _kind(bound: Any) -> type:
    return float if isinstance(bound, int | float) else type(bound)


def _comparable(bound: Any) -> Any:
    """Return a bound as a number, a duration or a moment; None for anything else."""
    if isinstance(bound, bool) or bound is None:
        return None
    if isinstance(bound, int | float):
        return bound
    if isinstance(bound, date):
        return datetime.fromisoformat(bound.isoformat()).replace(tzinfo=None)
    with suppress(ValueError):
        return AGE.parse(bound)
    with suppress(TypeError, ValueError):
        return datetime.fromisoformat(bound).replace(tzinfo=None)
    return None
