"""The fixes that a form offers, as columns. What a person typed becomes a literal; it is never read as SQL."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from millrace.contracts.job.column_fix import (
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
_TIME_LETTERS = frozenset("HhKkmsSaVzOXx")


def fixed_value(name: str, fix: ColumnFix) -> Column:
    """Return the new value of the column `name`; the caller converts it to the column's type."""
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
            instant = F.try_to_timestamp(text, F.lit(fix.value))
            return instant if _TIME_LETTERS & set(fix.value) else instant.cast("date")
        case MapValues():
            first, *others = ((text == F.lit(old), F.lit(new).cast("string")) for old, new in fix.values.items())
            return reduce(lambda cases, case: cases.when(*case), others, F.when(*first)).otherwise(text)


def loses_value(name: str, fix: ColumnFix) -> Column:
    """Return true where the fix cannot read the value that is there."""
    is_lost = F.col(f"`{name}`").isNotNull() & fixed_value(name, fix).isNull()
    return is_lost if isinstance(fix, ParseDate) else F.lit(False)
