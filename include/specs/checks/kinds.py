"""Check that an expectation compares a column only with values of the same kind.

If a number is compared with text, Spark casts the text, and the first row that cannot be cast fails the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from include.specs.document import Document, mapping_at
from include.specs.problem import Defect, KeyPath

_NUMBER_TYPES = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_VALUE_ARGUMENTS = ("min_value", "max_value", "value_set")
_OF_VALUES = frozenset(
    {
        "expect_column_values_to_be_between",
        "expect_column_values_to_be_in_set",
        "expect_column_values_to_not_be_in_set",
        "expect_column_distinct_values_to_be_in_set",
        "expect_column_max_to_be_between",
        "expect_column_min_to_be_between",
    }
)
"""The expectations that compare a column's own values; other expectations with bounds compare figures."""

_OF_FRACTIONS = frozenset(
    {
        "expect_column_mean_to_be_between",
        "expect_column_sum_to_be_between",
        "expect_column_proportion_of_unique_values_to_be_between",
    }
)

_FIXES = {
    "numbers": "write a number, without quotes",
    "whole numbers": "write a whole number, without quotes",
    "text": "write it in quotes",
    "dates or instants": 'write it as "2013-01-01" or "2013-01-01T00:00:00Z"',
}


def check_kinds(path: KeyPath, arguments: Mapping[str, Any], document: Document) -> Iterator[Defect]:
    """Find bounds and sets, in the rule at `path`, of another kind than the values that they are compared with."""
    kind = _compared_kind(str(path[-1]), arguments, document)
    for argument in _VALUE_ARGUMENTS if kind else ():
        bounds = arguments.get(argument)
        for value in bounds if isinstance(bounds, list) else [bounds]:
            if value is not None and not _is_of_kind(value, kind):
                yield Defect((*path, argument), f"this is compared with {kind}", value, _FIXES[kind])


def _compared_kind(name: str, arguments: Mapping[str, Any], document: Document) -> str:
    """Return the kind of values that the expectation compares; empty if unknown."""
    if name not in _OF_VALUES:
        return "numbers" if name in _OF_FRACTIONS else "whole numbers"
    column = mapping_at(document, "columns").get(arguments.get("column", ""))
    type_name = str(column.get("type", "string")) if isinstance(column, dict) else ""
    if type_name.startswith(_NUMBER_TYPES):
        return "numbers"
    if type_name in ("date", "timestamp"):
        return "dates or instants"
    return "text" if type_name == "string" else ""


def _is_of_kind(value: object, kind: str) -> bool:
    if kind == "dates or instants":
        return isinstance(value, str) and _is_iso(value)
    kinds = {"numbers": (int, float), "whole numbers": (int,), "text": (str,)}[kind]
    return isinstance(value, kinds) and not isinstance(value, bool)


def _is_iso(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
