"""Values that no source can have sent, or hardly any: an earlier Millrace made them of what did not fit a column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from millrace.contracts.counted import counted
from millrace.contracts.lake_path import LakePath
from millrace.control.log.stored_tables import open_table
from millrace.reading.datasets import dataset_of

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""The first day of the year 1 and the last of the year 9999, in days since 1970."""
_MICROSECONDS_OF_DAY = 86_400_000_000
_FAR = "is outside the years 1 to 9999"
_UNION = r'^\{"member\d+":'
_ROUNDED = r"^-?\d\.\d+E-?\d+$"


def odd_values(path: LakePath, columns: Collection[str]) -> tuple[str, ...]:
    """Return, for columns of the newest version of a table, what is odd about their values, and in how many rows.

    Of a struct, list or map it names the part, such as `items[].day`; keys of maps are not looked at.
    """
    dataset = dataset_of(open_table(path), path)
    found, names = Counter[tuple[str, str]](), [name for name in columns if name in dataset.schema.names]
    for batch in dataset.to_batches(columns=names):
        for name in names:
            for part, what, are_odd in _odd(name, batch[name]):
                found[part, what] += pc.sum(are_odd).as_py() or 0
    return tuple(f"{part} {what} in {counted(rows, 'row')}" for (part, what), rows in found.items() if rows)


def _odd(name: str, values: pa.Array) -> Iterator[tuple[str, str, pa.Array]]:
    """Yield each part of a column with each kind of odd value of its type, and which of the values have such."""
    kind = values.type
    if pa.types.is_struct(kind):
        for field, part in zip(kind, values.flatten(), strict=True):
            yield from _odd(f"{name}.{field.name}", part)
    elif pa.types.is_nested(kind):
        # PyArrow 26 ends the process if it is asked for the parents of a map's entries.
        lists = pa.ListArray.from_arrays(values.offsets, values.items) if pa.types.is_map(kind) else values
        parents = pc.list_parent_indices(lists)
        for part, what, are_odd in _odd(f"{name}[]", pc.list_flatten(lists)):
            yield part, what, pc.is_in(pa.array(range(len(values))), pc.unique(parents.filter(are_odd)))
    elif pa.types.is_date32(kind):
        yield name, _FAR, _outside(values.cast(pa.int32()), _FIRST_DAY, _LAST_DAY)
    elif pa.types.is_timestamp(kind):
        first, last = _FIRST_DAY * _MICROSECONDS_OF_DAY, (_LAST_DAY + 1) * _MICROSECONDS_OF_DAY - 1
        yield name, _FAR, _outside(values.cast(pa.timestamp("us")).cast(pa.int64()), first, last)
    elif pa.types.is_floating(kind):
        yield name, "is infinite", pc.is_inf(values)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        yield name, 'is a text like {"member0": ...}', pc.match_substring_regex(values, _UNION)
        yield name, "is a text like 1.2E16", pc.match_substring_regex(values, _ROUNDED)


def _outside(numbers: pa.Array, first: int, last: int) -> pa.Array:
    return pc.or_(pc.less(numbers, first), pc.greater(numbers, last))
