"""Choose the columns of which Delta stores the least and greatest value per file: readers skip files by them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from millrace.contracts.spec.column_types import BYTES, TRUTH, types_of
from millrace.contracts.spec.nested_type import NESTED, nested_type

MAX_COLUMNS = 32
"""Delta's own default."""

_WITHOUT_STATISTICS = (*types_of(BYTES, TRUTH), *NESTED)
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


def first_parts(columns: Mapping[str, str]) -> dict[str, str]:
    """Return a part with statistics of each struct of the columns, as its path -> its type.

    After a struct of which no part has statistics, delta-rs reads those of no further column.

    >>> first_parts({"id": "int", "shop": "struct<tags:array<int>,city:string,geo:struct<lat:double,lon:double>>"})
    {'shop.city': 'string', 'shop.geo.lat': 'double'}
    """
    return {path: kind for name, of_column in columns.items() for path, kind in _first_parts(name, of_column)}


def _first_parts(name: str, kind: str) -> Iterator[tuple[str, str]]:
    if not kind.lower().startswith("struct<"):
        return
    parts = {f"{name}.{part}": of_part for part, of_part in nested_type(kind).parts.items()}
    yield from [(path, of_part) for path, of_part in parts.items() if not of_part.startswith(_WITHOUT_STATISTICS)][:1]
    for path, of_part in parts.items():
        yield from _first_parts(path, of_part)
