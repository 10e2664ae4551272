"""Search one stored file for subjects: the columns of Parquet and Avro files, and the text of all others."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.control.landing.formats.avro_files import open_avro
from millrace.control.landing.formats.compression import UNPACKING_ERRORS, open_unpacked
from millrace.control.landing.formats.parquet_files import parquet_file
from millrace.erase.subjects import MOST_BYTES, Subjects

_STEP = 1 << 20
_OVERLAP = 16 * MOST_BYTES
"""More than any form of a value has, with the field before it."""

_ROWS = 1 << 16


@dataclass(frozen=True)
class Found:
    """What a file has of the subjects.

    Attributes:
        rows: the rows whose key is that of a subject.
        mentions: other rows with a text that names one; of a file without rows 1 if it does.
    """

    rows: int = 0
    mentions: int = 0

    def __bool__(self) -> bool:
        return bool(self.rows or self.mentions)


class UnreadFileError(Exception):
    """A file, or a column of it, that cannot be searched; the text says why, and has no value of the file."""


def search_file(name: str, content: BinaryIO, subjects: Subjects, keys: Collection[str]) -> Found:
    """Search a file.

    Args:
        name: its name, whose ending tells its format and its compression.
        content: its bytes.
        subjects: the subjects.
        keys: the columns or fields that hold keys.

    Raises:
        UnreadFileError: it is damaged, or it has a column that nothing reads.
    """
    try:
        if name.endswith(".parquet"):
            return _in_parquet(content, subjects, keys)
        if name.endswith(".avro"):
            return _in_records(open_avro(content)[1], subjects, keys)
        with open_unpacked(name, content) as text:
            return _in_text(text, re.compile(subjects.pattern(keys).encode()))
    except (*UNPACKING_ERRORS, ValueError, pa.ArrowException) as error:
        raise UnreadFileError("it is damaged, or has another format than its name says") from error


def _in_text(text: BinaryIO, pattern: re.Pattern[bytes]) -> Found:
    kept = b""
    while step := text.read(_STEP):
        kept += step
        if pattern.search(kept):
            return Found(mentions=1)
        kept = kept[-_OVERLAP:]
    return Found()


def _in_records(records: Iterator[dict[str, Any]], subjects: Subjects, keys: Collection[str]) -> Found:
    values, pattern = set(subjects.values), re.compile(subjects.pattern(keys))
    rows = mentions = 0
    for record in records:
        is_row = any(str(record.get(key)) in values for key in keys)
        rows += is_row
        mentions += not is_row and pattern.search(json.dumps(record, ensure_ascii=False, default=_as_text)) is not None
    return Found(rows, mentions)


def _as_text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _in_parquet(content: BinaryIO, subjects: Subjects, keys: Collection[str]) -> Found:
    stored = parquet_file(content)
    if stored.unread:
        raise UnreadFileError("; ".join(f"column {name}: {why}" for name, why in stored.unread.items()))
    schema, pattern = stored.file.schema_arrow, subjects.pattern(keys)
    columns = [column.name for column in schema if column.name in keys or _has_text(column.type)]
    if not columns:
        return Found()
    rows = mentions = 0
    for batch in stored.file.iter_batches(_ROWS, columns=columns):
        is_row, is_named = (np.zeros(batch.num_rows, dtype=bool) for _ in range(2))
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name in keys:
                is_row |= _are_values(column, subjects)
            if _has_text(column.type):
                is_named |= _name_any(column, pattern)
        rows += int(is_row.sum())
        mentions += int((is_named & ~is_row).sum())
    return Found(rows, mentions)


def _are_values(column: pa.Array, subjects: Subjects) -> np.ndarray[Any, Any]:
    """Return for each value whether it is the key of a subject, in the type of the column."""
    column = _without_view(column)
    own = [value for value in (_cast(value, column.type) for value in subjects.values) if value is not None]
    return _bools(pc.is_in(column, pa.array(own, column.type))) if own else np.zeros(len(column), dtype=bool)


def _cast(value: str, kind: pa.DataType) -> object | None:
    try:
        return cast(object, pa.scalar(value).cast(kind).as_py())
    except pa.ArrowException:
        return None  # no row of this type has it


def _name_any(column: pa.Array, pattern: str) -> np.ndarray[Any, Any]:
    """Return for each value of any type whether a text in it names a subject."""
    column = _without_view(column)
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _name_any(column.dictionary_decode(), pattern)
    if _is_text(kind):
        return _bools(pc.match_substring_regex(column, pattern))
    found = np.zeros(len(column), dtype=bool)
    if pa.types.is_struct(kind):
        for part in column.flatten():
            found |= _name_any(part, pattern)
    elif pa.types.is_map(kind):
        return _name_any(column.cast(pa.list_(pa.struct([kind.key_field, kind.item_field]))), pattern)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        of_parts = _name_any(column.flatten(), pattern)
        found[pc.list_parent_indices(column).to_numpy(zero_copy_only=False)[of_parts]] = True
    return found


def _has_text(kind: pa.DataType) -> bool:
    """Whether values of a type may hold text."""
    if pa.types.is_dictionary(kind):
        return _has_text(kind.value_type)
    if pa.types.is_nested(kind):
        return any(_has_text(kind.field(number).type) for number in range(kind.num_fields))
    return _is_text(kind)


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    kinds = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return any(is_kind(kind) for is_kind in (*kinds, types.is_string_view, types.is_binary_view))


def _without_view(column: pa.Array) -> pa.Array:
    """Return texts in the type that Arrow's functions take: delta-rs writes views, for which it lacks them (26.0)."""
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    return column.cast(pa.large_binary()) if pa.types.is_binary_view(column.type) else column


def _bools(values: pa.Array) -> np.ndarray[Any, Any]:
    return cast("np.ndarray[Any, Any]", values.fill_null(False).to_numpy(zero_copy_only=False))
