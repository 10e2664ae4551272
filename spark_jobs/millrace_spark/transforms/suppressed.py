"""Rows of erased subjects, found by the hash of their key: Spark's functions make the HMAC that the list has."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column
from pyspark.sql import functions as F

from millrace.contracts.job.findings import ERASED
from millrace.contracts.spec.expectation import Action
from millrace.erase.subjects import NUMBER, TEXT, message
from millrace_spark.quality.rules.row_rules import REFUSALS_TYPE, refusal

_BLOCK = 64
"""The bytes that SHA-256 takes at once: HMAC fills its key up to these."""

_FRACTION_ZEROS = r"\.?0+$"


def suppression(column: str, column_type: str, kind: str, salt: bytes, hashes: Collection[str]) -> Column:
    """Return the refusals of a row whose column has the key of a suppressed subject; NULL for any other row.

    Args:
        column: the column.
        column_type: its type: text, or an exact number.
        kind: the kind of the subjects.
        salt: the key of the hashes.
        hashes: the hashes.
    """
    refused = F.array(refusal(f"{ERASED} ({kind})", Action.DROP, "")).cast(REFUSALS_TYPE)
    return F.when(_hmac_sha256(salt, _hashed(column, column_type, kind)).isin(sorted(hashes)), refused)


def _hashed(column: str, column_type: str, kind: str) -> Column:
    """Return the bytes that the hash of a key covers; NULL without a key."""
    key = F.col(column).cast("string")
    if column_type.startswith("decimal"):
        key = F.when(F.instr(key, ".") > 0, F.regexp_replace(key, _FRACTION_ZEROS, "")).otherwise(key)
    form = TEXT if column_type == "string" else NUMBER
    return F.concat(F.lit(message(kind, form)), key).cast("binary")


def _hmac_sha256(salt: bytes, content: Column) -> Column:
    """Return HMAC-SHA256 in hexadecimal digits, by its definition: H(outer key, H(inner key, content))."""
    inner, outer = (bytes(byte ^ pad for byte in salt.ljust(_BLOCK, b"\0")) for pad in (0x36, 0x5C))
    digest = F.unhex(F.sha2(F.concat(F.lit(inner), content), 256))
    return F.sha2(F.concat(F.lit(outer), digest), 256)
