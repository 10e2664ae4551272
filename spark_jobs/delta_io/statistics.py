"""Choose the columns of which Delta stores the least and greatest value per file: readers skip files by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

MAX_COLUMNS = 32
"""Delta's own default."""

_WITHOUT_STATISTICS = ("binary", "boolean", "array", "map", "struct")
"""Types without a least and greatest value in Delta, which refuses a column of such a type here."""


def statistics_of(names: Iterable[str], columns: Mapping[str, str], partitioned_by: Sequence[str]) -> dict[str, str]:
    """Return the table property that names the columns with statistics.

    Args:
        names: columns that readers filter by, the most important first; columns without statistics are left out.
        columns: the table's columns, name -> Spark SQL type.
        partitioned_by: partition columns, which need no statistics.

    >>> statistics_of(["id", "tags"], {"id": "bigint", "tags": "array<string>"}, [])
    {'delta.dataSkippingStatsColumns': 'id'}
    """
    candidates = [name for name in dict.fromkeys(names) if name not in partitioned_by]
    skippable = [name for name in candidates if not columns[name].startswith(_WITHOUT_STATISTICS)]
    return {"delta.dataSkippingStatsColumns": ",".join(skippable[:MAX_COLUMNS])}
