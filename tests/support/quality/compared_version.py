"""A checked version, and what rules compare it with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame

from millrace_spark.quality.verdicts.comparable_version import ComparableVersion

AT = datetime(2013, 1, 2, tzinfo=UTC)
TABLE = "silver.things"


def compared_version(frames: Mapping[tuple[str, int], DataFrame], **facts: Any) -> ComparableVersion:
    """Return version 1 of a table without a past; the frames are those of other tables and versions."""
    version = ComparableVersion(
        table=TABLE,
        version=1,
        interval_end=AT,
        committed_at=AT,
        facts={},
        past=lambda: iter(()),
        certified=None,
        others={},
        sources={},
        read=lambda table, version: frames[table, version],
        rows_of=lambda table, version: frames[table, version].count(),
        columns_of=lambda table, version: dict(frames[table, version].dtypes),
    )
    return replace(version, **facts)
