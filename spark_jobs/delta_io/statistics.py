"""Which columns Delta keeps the least and greatest value of, file by file: readers skip files by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

MAX_COLUMNS = 32
"""As many as Delta's own default."""

_WITHOUT_STATISTICS = ("binary", "boolean", "array", "map", "struct")
"""Types of which Delta knows no least and greatest value; naming such a column is an error of its own."""


def statistics_of(names: Iterable[str], columns: Mapping[str, str], partitioned_by: Sequence[str]) -> dict[str, str]:
    """The table property that names the columns with statistics.

    Args:
        names: what rows are looked for by, the most wanted first; those that can have statistics are taken.
        columns: the table's columns, name -> Spark SQL type.
        partitioned_by: partition columns, which need none.

    >>> statistics_of(["id", "tags"], {"id": "bigint", "tags": "array<string>"}, [])
    {'delta.dataSkippingStatsColumns': 'id'}
    """
    wanted = [name for name in dict.fromkeys(names) if name not in partitioned_by]
    skippable = [name for name in wanted if not columns[name].startswith(_WITHOUT_STATISTICS)]
    return {"delta.dataSkippingStatsColumns": ",".join(skippable[:MAX_COLUMNS])}
