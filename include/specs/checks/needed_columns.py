"""The columns that every file of a bronze table must have."""

from __future__ import annotations

import re
from collections.abc import Iterable

from include.contracts.spec.table_spec import AnySpec, BronzeSpec, SilverSpec


def needed_columns(bronze: BronzeSpec, specs: Iterable[AnySpec]) -> frozenset[str]:
    """Return the declared columns that are required, not nullable, or part of a key of a silver table of `specs`."""
    required = {name for name, column in bronze.columns.items() if column.required or not column.nullable}
    readers = (spec for spec in specs if isinstance(spec, SilverSpec) and spec.source == bronze.table)
    keys = (spec.columns[key].expression or key for spec in readers for key in spec.keys)
    return frozenset(required | ({word for key in keys for word in re.findall(r"\w+", key)} & bronze.columns.keys()))
