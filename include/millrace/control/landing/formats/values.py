"""Texts of the values for which Spark has no type."""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

MAX_PRECISION = 38
"""The most digits of a decimal of Spark."""

MOST_MILLIS = 2**63 // 1000
"""The most milliseconds whose microseconds a long holds; Spark reads no file with a farther time."""


def time_texts(times: pa.Array) -> pa.Array:
    """Return times of a day, or timestamps as Spark writes them, in UTC; with nine digits if six do not suffice.

    >>> time_texts(pa.array([45296000000000, 45296123456789], pa.time64("ns"))).to_pylist()
    ['12:34:56.000000', '12:34:56.123456789']
    """
    if pa.types.is_timestamp(times.type):
        times = times.cast(pa.timestamp("ns", times.type.tz and "UTC")).cast(pa.timestamp("ns"))
    return pc.replace_substring_regex(times.cast(pa.string()), r"(\.\d{6})000$", r"\1")


def uuid_text(stored: bytes) -> str:
    """Return a UUID as text.

    >>> uuid_text(bytes(range(16)))
    '00010203-0405-0607-0809-0a0b0c0d0e0f'
    """
    return str(UUID(bytes=stored))


def interval_text(stored: bytes) -> str:
    """Return an interval of Parquet, which is a duration of Avro, as ISO 8601 writes it.

    >>> interval_text(bytes([14, 0, 0, 0, 2, 0, 0, 0, 220, 5, 0, 0]))
    'P14M2DT1.5S'
    >>> interval_text(bytes([0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255]))
    'P0M0DT4294967.295S'
    """
    months, days, millis = struct.unpack("<III", stored)
    seconds = (Decimal(millis) / 1000).normalize()
    return f"P{months}M{days}DT{seconds:f}S"


def json_text(value: Any) -> str:
    """Return a value with parts as JSON: bytes in base64, what JSON does not have as text.

    >>> json_text({"of": [b"\\xff", Decimal("1.50"), None]})
    '{"of": ["/w==", "1.50", null]}'
    """
    return json.dumps(value, ensure_ascii=False, default=_text_of_part)


def _text_of_part(value: Any) -> str:
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)
