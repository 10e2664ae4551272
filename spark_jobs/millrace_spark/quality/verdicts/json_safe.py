"""Convert values of a table to JSON's types."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any


def json_safe(value: Any) -> Any:
    """Return `value` in JSON's own types, so that a report reads back as it was written.

    Dates and moments become ISO 8601, bytes become hexadecimal digits, NaN and the infinities become their names, and
    decimals and values of other types become text.

    >>> from decimal import Decimal
    >>> json_safe({"day": date(2013, 1, 31), "fares": [Decimal("1.50"), float("nan")], 7: b"ab"})
    {'day': '2013-01-31', 'fares': ['1.50', 'nan'], '7': '6162'}
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_safe(item) for item in value]
    if hasattr(value, "tolist"):  # numpy's scalars and arrays
        return json_safe(value.tolist())
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes | bytearray) else str(value)
