"""The operations of a form as Column functions: what a person typed is a literal in them, and never read as SQL."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from include.contracts.job.column_fix import (
    ChangeText,
    ColumnFix,
    Copy,
    MapValues,
    ParseDate,
    Replace,
    SetNull,
    SetValue,
)

_CHANGES = {"trim": F.trim, "upper": F.upper, "lower": F.lower}
_LETTERS_OF_TIME = frozenset("HhKkmsSaVzOXx")


def fixed_value(name: str, fix: ColumnFix) -> Column:
    """The new value of the column `name`; it is cast to the column's type afterwards."""
    text = F.col(f"`{name}`").cast("string")
    match fix:
        case SetValue():
            return F.lit(fix.value)
        case SetNull():
            return F.lit(None).cast("string")
        case Copy():
            return F.col(f"`{fix.value}`")
        case ChangeText():
            return _CHANGES[fix.how](text)
        case Replace():
            return F.replace(text, F.lit(fix.value), F.lit(fix.by))
        case ParseDate():
            return _parsed(text, fix.value)
        case MapValues():
            return _mapped(text, fix.values)


def loses_value(name: str, fix: ColumnFix) -> Column:
    """True where the operation cannot read the value that is there."""
    is_lost = F.col(f"`{name}`").isNotNull() & fixed_value(name, fix).isNull()
    return is_lost if isinstance(fix, ParseDate) else F.lit(False)


def _parsed(text: Column, pattern: str) -> Column:
    instant = F.try_to_timestamp(text, F.lit(pattern))
    return instant if _LETTERS_OF_TIME & set(pattern) else instant.cast("date")


def _mapped(text: Column, values: dict[str, str | None]) -> Column:
    first, *others = ((text == F.lit(old), F.lit(new).cast("string")) for old, new in values.items())
    return reduce(lambda cases, case: cases.when(*case), others, F.when(*first)).otherwise(text)
