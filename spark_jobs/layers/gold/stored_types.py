"""The types of the columns of a computed table: Delta stores most of Spark's, and not all."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark.sql.types import AtomicType, DataType, VariantType

from include.errors import SpecError

_WAYS_OUT = {
    "interval": "Write a number, such as timestampdiff(SECOND, <start>, <end>).",
    "void": "It is always NULL: give it a type, such as cast(NULL AS string).",
    "collate": "Write collate(<text>, 'UTF8_BINARY').",
}
"""Word of a type that Delta 4.4 does not store -> the way out."""

_NOT_STORED = re.compile(rf"\b({'|'.join(_WAYS_OUT)})\b")


def require_stored_types(table: str, types: Mapping[str, str]) -> None:
    """Check that Delta can store the columns of a table.

    Args:
        table: the table.
        types: column -> its type, as Spark writes it.

    Raises:
        SpecError: it cannot; the message names a column and the way out.

    >>> require_stored_types("gold.stays", {"guest": "string", "nights": "array<int>"})
    >>> require_stored_types("gold.stays", {"guest": "string", "stay": "interval day to second"})
    Traceback (most recent call last):
        ...
    include.errors.SpecError: gold.stays: column stay is of the type interval day to second, which Delta does not store
    Write a number, such as timestampdiff(SECOND, <start>, <end>).
    """
    for column, kind in types.items():
        if match := _NOT_STORED.search(kind):
            cause = f"{table}: column {column} is of the type {kind}, which Delta does not store"
            raise SpecError(cause, _WAYS_OUT[match[1]])


def has_order(kind: DataType) -> bool:
    """Whether Spark can sort by a type, and Delta has its least and greatest value for each file."""
    return isinstance(kind, AtomicType) and not isinstance(kind, VariantType)
