"""Values that an earlier Millrace made of what did not fit, found in a table by one pass over it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from millrace.reading.odd_values import odd_values

FAR = np.datetime64("20089-01-01")


def test_what_no_source_has_sent_is_counted_by_column(tmp_path: Path) -> None:
    days = pa.array(np.array(["2024-06-30", FAR, "0000-12-31", "9999-12-31"], "datetime64[D]"))
    instants = pa.array(np.array([FAR, "2024-06-30", "9999-12-31T23:59:59.999999", "0001-01-01"], "datetime64[us]"))
    columns = {
        "day": days,
        "at": instants.cast(pa.timestamp("us", "UTC")),
        "weight": [1.5, float("inf"), float("-inf"), float("nan")],
        "what": ['{"member0":"txt","member1":null}', '{"member": 1}', "1.2345678901234568E16", "12E1"],
        "other": ['{"member0":1}', None, None, None],
        "fine": [1, 2, 3, None],
        "deep": pa.array(
            [
                [{"at": {"a": "1.2E16", "b": None}, "of": 1.5}, {"at": None, "of": float("inf")}],
                None,
                [{"at": {"a": "-1.25E-7", "b": "x"}, "of": float("inf")}, {"at": {"c": "3.0E9"}, "of": -float("inf")}],
                [None, {"at": {}, "of": None}],
            ],
            pa.list_(pa.struct([("at", pa.map_(pa.string(), pa.string())), ("of", pa.float64())])),
        ),
        "within": pa.StructArray.from_arrays([days], ["day"]),
    }
    write_deltalake(str(tmp_path / "t"), pa.table(columns))
    assert odd_values(tmp_path / "t", ["day", "at", "weight", "what", "fine", "deep", "within", "gone"]) == (
        "day is outside the years 1 to 9999 in 2 rows",
        "at is outside the years 1 to 9999 in 1 row",
        "weight is infinite in 2 rows",
        'what is a text like {"member0": ...} in 1 row',
        "what is a text like 1.2E16 in 1 row",
        "deep[].at[] is a text like 1.2E16 in 2 rows",
        "deep[].of is infinite in 2 rows",
        "within.day is outside the years 1 to 9999 in 2 rows",
    )
