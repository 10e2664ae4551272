"""Check the columns of nested types, structs, arrays and maps: which settings and rules take them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from millrace.contracts.spec.expectation_arguments import COLUMN_ARGUMENTS, COLUMN_LIST_ARGUMENTS
from millrace.contracts.spec.nested_type import is_nested
from millrace.specs.document import Document, list_at, mapping_at, stated_rules
from millrace.specs.problem import Defect

_RULES = frozenset(
    {
        "expect_column_values_to_not_be_null",
        "expect_column_values_to_be_null",
        "expect_column_to_exist",
        "expect_column_null_share_to_be_stable",
    }
)
"""The rules on a column that do not compare its values."""


_LISTS = ("keys", "sequence_by", "partitioned_by", "zorder_by")
"""The settings whose columns are compared or put in order."""


def check_nested(document: Document) -> Iterator[Defect]:
    """Find settings and rules that need single values, and name a column of a nested type."""
    nested = nested_columns(document)
    for key in _LISTS:
        for index, name in enumerate(list_at(document, key)):
            if name in nested:
                fix = f"name a column of a simple type, such as one with `from: {name}.<part>`"
                yield Defect((key, index), f"the values of {nested[name]} have no order", name, fix)
    is_bronze = str(document.get("table", "")).startswith("bronze.")
    for path, rule, arguments in stated_rules(document):
        for argument in (*COLUMN_ARGUMENTS, *COLUMN_LIST_ARGUMENTS):
            stated = arguments.get(argument)
            names = [name for name in (stated if isinstance(stated, list) else [stated]) if isinstance(name, str)]
            for name in names if rule not in _RULES else ():
                if name in nested:
                    message = f"{name} is {nested[name]}, and this rule compares single values"
                    there = "in silver, for a column" if is_bronze else "for a column"
                    fix = f"state the rule {there} `from: {name}.<part>`; or expect_sql on {name}.<part>"
                    yield Defect((*path, argument), message, stated, fix)


def nested_columns(document: Document) -> Mapping[str, str]:
    """Return the declared columns of nested types, with their types."""
    types = {
        name: column.get("type") for name, column in mapping_at(document, "columns").items() if isinstance(column, dict)
    }
    return {name: kind for name, kind in types.items() if isinstance(kind, str) and is_nested(kind)}
