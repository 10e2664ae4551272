"""Check the bounds and sets of an expectation: their order, their warning band, and the kind of their values.

If a number is compared with text, Spark casts the text, and the first row that cannot be cast fails the whole batch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime
from typing import Any

from millrace.contracts.spec.column_types import BYTES, TEXT, TIME, TRUTH, TYPES, base_of
from millrace.contracts.spec.duration import AGE
from millrace.contracts.spec.expectation_arguments import ARGUMENTS, BAND_ARGUMENTS
from millrace.specs.checks.columns import type_of_column
from millrace.specs.document import Document
from millrace.specs.problem import Defect, KeyPath, did_you_mean

_VALUE_ARGUMENTS = ("min_value", "max_value", "value_set")
_OF_VALUES = frozenset(
    {
        "expect_column_values_to_be_between",
        "expect_column_values_to_be_in_set",
        "expect_column_values_to_not_be_in_set",
        "expect_column_distinct_values_to_be_in_set",
        "expect_column_distinct_values_to_contain_set",
        "expect_column_distinct_values_to_equal_set",
        "expect_column_most_common_value_to_be_in_set",
        "expect_column_max_to_be_between",
        "expect_column_min_to_be_between",
    }
)
"""The expectations that compare a column's own values; other expectations with bounds compare figures."""

_EXTREMES = ("expect_column_max_to_be_between", "expect_column_min_to_be_between")

_OF_FRACTIONS = frozenset(
    {
        "expect_column_mean_to_be_between",
        "expect_column_median_to_be_between",
        "expect_column_stdev_to_be_between",
        "expect_column_sum_to_be_between",
        "expect_column_proportion_of_non_null_values_to_be_between",
        "expect_column_proportion_of_unique_values_to_be_between",
    }
)

_NUMBERS, _TIMES = "numbers", "dates or instants"
_MEASURED = {
    "expect_column_values_to_be_between": (_NUMBERS, _TIMES),
    "expect_column_mean_to_be_between": (_NUMBERS,),
    "expect_column_median_to_be_between": (_NUMBERS,),
    "expect_column_stdev_to_be_between": (_NUMBERS,),
    "expect_column_sum_to_be_between": (_NUMBERS,),
    "expect_column_value_z_scores_to_be_less_than": (_NUMBERS,),
}
"""The expectations that only columns of some kinds can have -> these kinds."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?)?)?")
"""The dates and instants that Spark reads, too: it gets the values of a set as they are, and bounds in its own form."""

_FIXES = {
    "numbers": "write a number, without quotes",
    "whole numbers": "write a whole number, without quotes",
    "text": "write it in quotes",
    "dates": 'write it as "2013-01-01"',
    "dates or instants": 'write it as "2013-01-01" or "2013-01-01T00:00:00Z"',
    "booleans": "write true or false, without quotes",
}


def check_band(path: KeyPath, name: str, outer: Mapping[str, Any], warn: Mapping[str, Any]) -> Iterator[Defect]:
    """Find arguments of a warning band that are not bounds, or are wider than those of the rule's own band, `outer`."""
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


def check_kinds(path: KeyPath, arguments: Mapping[str, Any], document: Document) -> Iterator[Defect]:
    """Find bounds and sets, in the rule at `path`, of another kind than the values that they are compared with."""
    kind = _compared_kind(str(path[-1]), arguments, document)
    for argument in _VALUE_ARGUMENTS if kind else ():
        bounds = arguments.get(argument)
        for value in bounds if isinstance(bounds, list) else [bounds]:
            is_read = kind != _TIMES or argument != "value_set" or _TIME.fullmatch(str(value))
            if value is not None and not (_is_of_kind(value, kind) and is_read):
                yield Defect((*path, argument), f"this is compared with {kind}", value, _FIXES[kind])


def check_column_kinds(path: KeyPath, arguments: Mapping[str, Any], document: Document) -> Iterator[Defect]:
    """Find columns whose values the rule at `path` cannot measure, and two columns that it cannot compare."""
    measured, column = _MEASURED.get(str(path[-1])), arguments.get("column")
    if measured and (kind := _kind_of_column(column, document)) and kind not in measured:
        message = f"{column} holds {kind}, and this rule measures {' or '.join(measured)}"
        yield Defect((*path, "column"), message, column, "leave the rule out, or write a condition: expect_sql")
    pair = [arguments.get(key) for key in ("column_A", "column_B")]
    kinds = [_kind_of_column(name, document) for name in pair]
    if all(kinds) and kinds[0] != kinds[1] and path[-1] != "expect_column_pair_values_to_be_in_set":
        message = f"{pair[0]} holds {kinds[0]}, which {kinds[1]} cannot be compared with"
        yield Defect((*path, "column_B"), message, pair[1], f"name a column of {kinds[0]}, or write expect_sql")


def _kind_of_column(name: object, document: Document) -> str:
    """Return the kind of a column's values; empty if the document does not say, and for nested types."""
    kind = TYPES.get(base_of(type_of_column(document, name) or ""))
    return {TIME: _TIMES, TEXT: "text", TRUTH: "booleans", BYTES: "bytes"}.get(kind.values, _NUMBERS) if kind else ""


def _compared_kind(name: str, arguments: Mapping[str, Any], document: Document) -> str:
    """Return the kind of values that the expectation compares; empty if unknown."""
    if name not in _OF_VALUES:
        return "numbers" if name in _OF_FRACTIONS else "whole numbers"
    column = arguments.get("column")
    kind = _kind_of_column(column, document)
    if name in _EXTREMES and type_of_column(document, column) == "date":
        return "dates"  # Great Expectations cannot compare a date with an instant
    is_compared = kind in _MEASURED.get(name, (kind,)) and kind != "bytes"
    # Great Expectations compares the extremes of booleans with numbers.
    return kind if is_compared and (kind != "booleans" or name.endswith("_set")) else ""


def _is_of_kind(value: Any, kind: str) -> bool:
    if kind in ("dates", _TIMES):
        with suppress(TypeError, ValueError):
            datetime.fromisoformat(value)
            return not value.isdigit() and (kind == _TIMES or _DATE.fullmatch(value) is not None)
        return False
    of_kinds = {_NUMBERS: (int, float), "whole numbers": (int,), "text": (str,), "booleans": (bool,)}
    return isinstance(value, of_kinds[kind]) and (kind == "booleans" or not isinstance(value, bool))


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
