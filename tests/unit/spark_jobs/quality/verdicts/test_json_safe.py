"""Whatever a table holds, its report is JSON that reads back as it was written."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.quality.verdicts.json_safe import json_safe

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes()
    | st.decimals(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3),
    max_leaves=8,
)


@given(value=VALUES)
def test_any_value_reads_back_as_it_was_written(value: Any) -> None:
    safe = json_safe(value)
    assert json.loads(json.dumps(safe, allow_nan=False)) == safe
    assert json_safe(safe) == safe


@pytest.mark.parametrize(
    ("value", "safe"),
    [
        (True, True),
        (np.int64(5), 5),
        (np.array([1.5, math.inf]), [1.5, "inf"]),
        (np.bool_(False), False),
        ({"a": (1, Decimal("1.50"))}, {"a": [1, "1.50"]}),
        (datetime(2013, 1, 1, 5, tzinfo=UTC), "2013-01-01T05:00:00+00:00"),
        (date(2013, 1, 1), "2013-01-01"),
        (time(5, 15), "05:15:00"),
        (b"\x00\xff", "00ff"),
        (-math.inf, "-inf"),
    ],
)
def test_each_kind_of_value_becomes_what_json_has_for_it(value: Any, safe: Any) -> None:
    assert json_safe(value) == safe
    assert type(json_safe(value)) is type(safe)
