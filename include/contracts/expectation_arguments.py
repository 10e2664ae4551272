"""The arguments that each expectation of a spec takes, named as Great Expectations names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

COLUMN_ARGUMENTS = ("column", "column_A", "column_B")
"""The arguments that name one column each; `column_list` and `column_set` name several."""

COLUMN_LIST_ARGUMENTS = ("column_list", "column_set")


@dataclass(frozen=True)
class Arguments:
    """What one expectation takes.

    Attributes:
        required: the arguments that must be given.
        optional: the arguments that may be given.
        one_of: when not empty, at least one of these (all optional by themselves) must be given.
    """

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()

    @property
    def known(self) -> tuple[str, ...]:
        """Every argument that the expectation takes."""
        return (*self.required, *self.one_of, *self.optional)


_BOUNDS = ("min_value", "max_value")
_STRICT = ("strict_min", "strict_max")
_COLUMN = Arguments(required=("column",), optional=("mostly",))
_COLUMN_BOUNDS = Arguments(required=("column",), one_of=_BOUNDS, optional=_STRICT)
_COLUMN_VALUES_BOUNDS = Arguments(required=("column",), one_of=_BOUNDS, optional=(*_STRICT, "mostly"))
_COLUMN_SET = Arguments(required=("column", "value_set"), optional=("mostly",))
_COLUMN_REGEX = Arguments(required=("column", "regex"), optional=("mostly",))

ARGUMENTS = {
    "expect_column_values_to_not_be_null": _COLUMN,
    "expect_column_values_to_be_null": _COLUMN,
    "expect_column_values_to_be_unique": _COLUMN,
    "expect_column_values_to_be_between": _COLUMN_VALUES_BOUNDS,
    "expect_column_value_lengths_to_be_between": _COLUMN_VALUES_BOUNDS,
    "expect_column_values_to_be_in_set": _COLUMN_SET,
    "expect_column_values_to_not_be_in_set": _COLUMN_SET,
    "expect_column_values_to_match_regex": _COLUMN_REGEX,
    "expect_column_values_to_not_match_regex": _COLUMN_REGEX,
    "expect_column_pair_values_a_to_be_greater_than_b": Arguments(
        required=("column_A", "column_B"), optional=("or_equal", "mostly")
    ),
    "expect_column_distinct_values_to_be_in_set": Arguments(required=("column", "value_set")),
    "expect_column_max_to_be_between": _COLUMN_BOUNDS,
    "expect_column_mean_to_be_between": _COLUMN_BOUNDS,
    "expect_column_min_to_be_between": _COLUMN_BOUNDS,
    "expect_column_sum_to_be_between": _COLUMN_BOUNDS,
    "expect_column_proportion_of_unique_values_to_be_between": _COLUMN_BOUNDS,
    "expect_column_unique_value_count_to_be_between": _COLUMN_BOUNDS,
    "expect_column_to_exist": Arguments(required=("column",), optional=("column_index",)),
    "expect_compound_columns_to_be_unique": Arguments(required=("column_list",), optional=("mostly",)),
    "expect_table_column_count_to_be_between": Arguments(one_of=_BOUNDS),
    "expect_table_columns_to_match_set": Arguments(required=("column_set",), optional=("exact_match",)),
    "expect_table_row_count_to_be_between": Arguments(one_of=_BOUNDS, optional=_STRICT),
    "expect_table_row_count_to_equal": Arguments(required=("value",)),
}
"""Expectation -> its arguments; a test holds it against the installed Great Expectations."""

_NUMBER_OR_TEXT = {"type": ["number", "string"]}
_NAMES = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_YES_OR_NO = {"type": "boolean"}

ARGUMENT_SCHEMAS: dict[str, dict[str, Any]] = {
    "column": {"type": "string"},
    "column_A": {"type": "string"},
    "column_B": {"type": "string"},
    "column_list": _NAMES,
    "column_set": _NAMES,
    "column_index": {"type": "integer"},
    "value_set": {"type": "array", "minItems": 1},
    "regex": {"type": "string"},
    "value": {"type": "integer"},
    "min_value": _NUMBER_OR_TEXT,
    "max_value": _NUMBER_OR_TEXT,
    "strict_min": _YES_OR_NO,
    "strict_max": _YES_OR_NO,
    "or_equal": _YES_OR_NO,
    "exact_match": _YES_OR_NO,
    "mostly": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
}
"""Argument -> the JSON Schema of its value; the catalog's checks and the editor's schema both come from here."""
