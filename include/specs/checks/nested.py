"""Check the columns of nested types, structs, arrays and maps: where they may be, and which settings take them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from include.contracts.spec.expectation_arguments import COLUMN_ARGUMENTS, COLUMN_LIST_ARGUMENTS
from include.contracts.spec.nested_type import is_nested
from include.specs.document import Document, list_at, mapping_at, stated_rules
from include.specs.problem import Defect

_RULES = frozenset(
    {
        "expect_column_values_to_not_be_null",
        "expect_column_values_to_be_null",
        "expect_column_to_exist",
        "expect_column_null_share_to_be_stable",
    }
)
"""The rules on a column that do not compare its values."""


def check_nested(document: Document) -> Iterator[Defect]:
    """Find columns of nested types outside bronze, and settings and rules that need single values."""
    nested = nested_columns(document)
    if not str(document.get("table", "")).startswith("bronze."):
        for name, kind in nested.items():
            fix = f"take its parts: `from: {name}.<part>`; or keep it as text: `from: to_json({name})`"
            yield Defect(("columns", name, "type"), "only bronze has columns of this type", kind, fix)
        return
    for key in ("partitioned_by", "zorder_by"):
        for index, name in enumerate(list_at(document, key)):
            if name in nested:
                yield Defect((key, index), f"the values of {nested[name]} have no order", name, "name another column")
    for path, rule, arguments in stated_rules(document):
        for argument in (*COLUMN_ARGUMENTS, *COLUMN_LIST_ARGUMENTS):
            stated = arguments.get(argument)
            names = [name for name in (stated if isinstance(stated, list) else [stated]) if isinstance(name, str)]
            for name in names if rule not in _RULES else ():
                if name in nested:
                    message = f"{name} is {nested[name]}, and this rule compares single values"
                    fix = f"state the rule in silver, for a column `from: {name}.<part>`"
                    yield Defect((*path, argument), message, stated, fix)


def nested_columns(document: Document) -> Mapping[str, str]:
    """Return the declared columns of nested types, with their types."""
    types = {
        name: column.get("type") for name, column in mapping_at(document, "columns").items() if isinstance(column, dict)
    }
    return {name: kind for name, kind in types.items() if isinstance(kind, str) and is_nested(kind)}
