"""Search one stored file for subjects: the columns of Parquet and Avro files, and the text of all others."""

from __future__ import annotations

import codecs
import html
import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, BinaryIO, cast
from urllib.parse import unquote
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millrace.control.landing.formats.avro_files import open_avro
from millrace.control.landing.formats.compression import UNPACKING_ERRORS, open_unpacked
from millrace.control.landing.formats.parquet_files import parquet_file
from millrace.erase.reach import Reach
from millrace.erase.subjects import MOST_BYTES, Subjects, forms_of, number_in, patterns_of

_STEP = 1 << 20
_OVERLAP = 16 * MOST_BYTES
"""More than any form of a key has, with the field before it."""

_ROWS = 4096
"""The rows that are read at once: of texts of 50 kB these are 200 MB."""

_PARQUET, _AVRO = b"PAR1", b"Obj\x01"
_PACKED = {b"\x1f\x8b": ".gz", b"\x28\xb5": ".zst"}

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

_MAY_DIFFER = r"[\\%&\x1b]|''|\"\"|[^\x00-\x7f]"
"""A text without any of these has no other form."""

_WHOLE = re.compile(r"[^\s\"\\,;<>|]+")
"""A key alone: several in one value, or one with words around it, have such signs between them."""

Mask = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Found:
    """What a file has of the subjects.

    Attributes:
        rows: the rows whose key is that of a subject.
        mentions: other rows with a value that names one; of a file without rows 1 if it does.
    """

    rows: int = 0
    mentions: int = 0

    def __bool__(self) -> bool:
        return bool(self.rows or self.mentions)


class UnreadFileError(Exception):
    """A file, or a column of it, that cannot be searched; the text says why, and has no value of the file."""


@dataclass(frozen=True)
class Keys:
    """Where keys are expected.

    Attributes:
        columns: the columns or fields that hold keys, such as `who.id`.
        computed: those that are computed from keys.
        anywhere: whether keys of a few digits count in any text, as in files whose columns have no names.
        numbers: those whose values are numbers, however they are written, such as the text 17.00.
        records: column -> the fields of keys in the JSON records that it holds.
    """

    columns: Collection[str] = ()
    computed: Collection[str] = ()
    anywhere: bool = False
    numbers: Collection[str] = ()
    records: Mapping[str, Collection[str]] = field(default_factory=dict)

    @classmethod
    def of_table(cls, reach: Reach) -> Keys:
        """Return where the rows of a table, and the deleted keys beside it, have keys."""
        records = {"_rescued": reach.fields} if reach.fields else {}
        return cls(reach.keys, reach.computed, numbers=reach.numbers, records=records)

    @classmethod
    def of_quarantine(cls, reach: Reach) -> Keys:
        """Return where the refused rows of a table have keys: as it would hold them, and as it received them."""
        own = (*reach.keys, *reach.fields)
        return cls(computed=reach.computed, numbers=reach.numbers, records={"record": own, "received": reach.received})


class FileSearch:
    """Searches files of a place for subjects.

    Args:
        subjects: the subjects.
        keys: where their keys are expected.
    """

    def __init__(self, subjects: Subjects, keys: Keys) -> None:
        self._subjects = subjects
        self._keys = frozenset(map(str.lower, keys.columns))
        self._records = {column: frozenset(map(str.lower, names)) for column, names in keys.records.items()}
        self._fields = self._keys.union(*self._records.values())
        self._expected = self._fields | frozenset(map(str.lower, keys.computed))
        self._numbers = frozenset(map(str.lower, keys.numbers))
        self._anywhere = keys.anywhere

    def search(self, path: str, content: BinaryIO, encoding: str = "UTF-8") -> Found:
        """Search a file, whose format shows in its first bytes.

        Args:
            path: its path, in which a folder may have the value of a partition.
            content: its bytes.
            encoding: of a text.

        Raises:
            UnreadFileError: it is damaged, or it has a column that nothing reads.
        """
        try:
            found = self._in_content(content, encoding)
        except (*UNPACKING_ERRORS, ValueError, LookupError, pa.ArrowException) as error:
            raise UnreadFileError("it is damaged, or has a form that is not known") from error
        return found or Found(mentions=int(self._in_path(path)))

    def _in_content(self, content: BinaryIO, encoding: str) -> Found:
        first = content.read(4)
        content.seek(0)
        if first == _PARQUET:
            return self._in_parquet(content)
        if first == _AVRO:
            return self._in_records(open_avro(content)[1])
        with open_unpacked(_PACKED.get(first[:2], ""), content) as text:
            return self._in_text(text, encoding)

    @cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        return [re.compile(pattern) for pattern in self._for_arrow]

    @cached_property
    def _for_arrow(self) -> list[str]:
        return patterns_of(self._subjects, self._expected, anywhere=self._anywhere)

    def _names_one(self, text: str) -> bool:
        return any(
            pattern.search(plain) and pattern.search(self._without_others(plain))
            for plain in plain_texts(text)
            for pattern in self._patterns
        )

    @cached_property
    def _names(self) -> str:
        """The pattern of the names of keys; not of parts, since other fields may be called so."""
        return "|".join(re.escape(name) for name in sorted(self._fields) if "." not in name)

    @cached_property
    def _of_others(self) -> re.Pattern[str]:
        """The value of a field of JSON, or of a folder of a partition, in the first or the second group."""
        in_json = rf'\\*"(?:{self._names})\\*"\s{{0,8}}:\s{{0,8}}\\*"([^\s"\\,;<>|]+)(?=\\*")'
        return re.compile(rf"(?i:{in_json}|(?<![^/\"\s])(?:{self._names})=([^\s\"\\,;<>|/]+)(?=/))")

    def _without_others(self, text: str) -> str:
        """Return a text without the keys of others, which may have that of a subject within them, as C-17-4 has."""
        if not self._names:
            return text
        return self._of_others.sub(lambda at: "" if self._is_other_key(at[1] or at[2]) else at[0], text)

    def _is_other_key(self, value: str) -> bool:
        """Whether a value in a place of keys is a whole key, but none of a subject in any form."""
        return _WHOLE.fullmatch(value) is not None and not any(map(self._is_own, plain_texts(value)))

    def _is_own(self, value: str) -> bool:
        forms, begins = self._own_forms
        return value in forms or value.startswith(begins) or number_in(value) in self._subjects.numbers

    @cached_property
    def _own_forms(self) -> tuple[frozenset[str], tuple[str, ...]]:
        """The keys of the subjects, also as statistics cut them off; and these alone, to which a sign may be added."""
        forms = frozenset(form for value in self._subjects.values for form in forms_of(value))
        return forms, tuple(forms.difference(self._subjects.values))

    def _in_path(self, path: str) -> bool:
        for part in path.split("/"):
            name, _, value = part.partition("=")
            if name.lower() in self._keys and self._is_key(unquote(value), name.lower()):
                return True
        return self._names_one(path)

    def _is_key(self, value: object, path: str) -> bool:
        """Whether the value at a place of keys is the key of a subject."""
        if isinstance(value, bytes):
            value = value.decode(errors="replace")
        if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
            return False
        is_number = path in self._numbers or not isinstance(value, str)
        return str(value) in self._values or (is_number and number_in(str(value)) in self._subjects.numbers)

    @cached_property
    def _values(self) -> frozenset[str]:
        return frozenset(self._subjects.values)

    def _in_text(self, text: BinaryIO, encoding: str) -> Found:
        decoder, kept = codecs.getincrementaldecoder(encoding)(errors="replace"), ""
        while True:
            step = text.read(_STEP)
            kept += decoder.decode(step, not step)
            end = _line_end(kept, len(kept)) if step else len(kept)
            if self._names_one(kept[:end]):
                return Found(mentions=1)
            if not step:
                return Found()
            kept = kept[_line_end(kept, max(end - _OVERLAP, 0)) :]

    def _in_records(self, records: Iterable[object]) -> Found:
        found = [self._in_record(record, self._keys) for record in records]
        return Found(sum(is_row for is_row, _ in found), sum(is_named and not is_row for is_row, is_named in found))

    def _in_record(self, record: object, keys: Collection[str]) -> tuple[bool, bool]:
        """Return whether a field of keys has that of a subject, and whether a value names one."""
        values = list(_values_of_record(record))
        is_row = any(path in keys and self._is_key(value, path) for path, value in values)
        return is_row, is_row or any(self._is_named(path, value, keys) for path, value in values)

    def _is_named(self, path: str, value: object, keys: Collection[str]) -> bool:
        if isinstance(value, str | bytes):
            text = value if isinstance(value, str) else value.decode(errors="replace")
            return not (path in keys and self._is_other_key(text)) and self._names_one(text)
        is_long = str(value) not in self._subjects.short
        return (is_long or path in self._expected) and self._is_key(value, path)

    def _in_parquet(self, content: BinaryIO) -> Found:
        stored = parquet_file(content)
        if stored.unread:
            raise UnreadFileError("; ".join(f"column {name}: {why}" for name, why in stored.unread.items()))
        columns = [column.name for column in stored.file.schema_arrow if _may_hold_key(column.type)]
        rows = mentions = 0
        for batch in stored.file.iter_batches(_ROWS, columns=columns) if columns else ():
            is_row, is_named = self.in_rows(batch)
            rows += int(is_row.sum())
            mentions += int((is_named & ~is_row).sum())
        return Found(rows, mentions)

    def is_of_subject(self, record: str) -> bool:
        """Whether a record as JSON has the key of a subject in a field of keys."""
        return self._in_json(record, self._keys)[0]

    def _in_json(self, text: str, keys: Collection[str]) -> tuple[bool, bool]:
        """Return what `_in_record` does of a record as JSON; a text that is none has no key of its own."""
        try:
            return self._in_record(json.loads(text, parse_float=Decimal), keys)
        except ValueError:
            return False, self._names_one(text)

    def in_rows(self, batch: pa.RecordBatch) -> tuple[Mask, Mask]:
        """Return for each row whether its key is that of a subject, and whether a value of it names one."""
        is_row, is_named = (np.zeros(batch.num_rows, dtype=bool) for _ in range(2))
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if _may_hold_key(column.type):
                of_row, of_text = self._in_column(column, name.lower())
                is_row |= of_row
                is_named |= of_text
        return is_row, is_named

    def _in_column(self, column: pa.Array, path: str) -> tuple[Mask, Mask]:
        """Return for each value whether it is a key in a place of keys, and whether it, or a part, names a subject."""
        column = _plain(column)
        kind, nothing = column.type, np.zeros(len(column), dtype=bool)
        if pa.types.is_struct(kind):
            parts = [
                self._in_column(part, f"{path}.{kind.field(at).name.lower()}")
                for at, part in enumerate(column.flatten())
            ]
            is_row, is_named = nothing, nothing.copy()
            for of_row, of_part in parts:
                is_row, is_named = is_row | of_row, is_named | of_part
            return is_row, is_named
        if pa.types.is_nested(kind):
            masks = self._in_column(column.flatten(), path)
            of_rows = pc.list_parent_indices(column).to_numpy(zero_copy_only=False)
            found = [nothing.copy(), nothing.copy()]
            for mask, of_parts in zip(found, masks, strict=True):
                mask[of_rows[of_parts]] = True
            return found[0], found[1]
        if path in self._records and _is_text(kind):
            return self._in_json_column(column, self._records[path])
        is_key = self._are_keys(column, path)
        is_named = is_key | self._are_named(column)
        if path not in self._keys:
            return nothing, is_named
        for at in map(int, np.flatnonzero(is_named & ~is_key)):
            is_named[at] = not self._is_other_key(_text_at(column, at))
        return is_key, is_named

    def _in_json_column(self, column: pa.Array, keys: Collection[str]) -> tuple[Mask, Mask]:
        """Return what `_in_column` does of records as JSON; only those in which something may be found are read."""
        is_row, is_named = np.zeros(len(column), dtype=bool), self._are_named(column)
        may_be = _bools(column.is_valid()) if self._numbers.intersection(keys) else is_named
        for at in map(int, np.flatnonzero(may_be)):
            is_row[at], is_named[at] = self._in_json(_text_at(column, at), keys)
        return is_row, is_named

    def texts_of_keys(self, column: pa.Array, path: str) -> list[str]:
        """Return the texts in a column of keys that are those of subjects, such as 17.00 for 17."""
        column = _plain(column)
        return [str(text) for text in column.filter(pa.array(self._are_keys(column, path))).unique().to_pylist()]

    def _are_keys(self, column: pa.Array, path: str) -> Mask:
        """Return for each value whether it is the key of a subject, in the type of the column."""
        kind, own = column.type, keys_of_type(self._subjects, column.type)
        if not (path in self._expected or _is_text(kind)):
            short = {Decimal(value) for value in self._subjects.short}
            own = [key for key in own if Decimal(str(key)) not in short]
        is_key = _bools(pc.is_in(column, pa.array(own, kind))) if own else np.zeros(len(column), dtype=bool)
        if path in self._numbers and _is_text(kind) and self._subjects.numbers:
            words = column.dictionary_encode()
            hits = pa.array([self._is_key(word, path) for word in words.dictionary.to_pylist()], pa.bool_())
            is_key |= _bools(hits.take(words.indices))
        return is_key

    def _are_named(self, column: pa.Array) -> Mask:
        """Return for each text whether it names a subject, in any of its forms."""
        found = np.zeros(len(column), dtype=bool)
        if not _is_text(column.type):
            return found
        for pattern in self._for_arrow:
            found |= _bools(pc.match_substring_regex(column, pattern))
        may_differ = _bools(pc.match_substring_regex(column, _MAY_DIFFER)) & ~found
        if self._names:
            may_differ |= _bools(pc.match_substring_regex(column, rf'(?i:(?:{self._names})\\*["=])')) & found
        for at in map(int, np.flatnonzero(may_differ)):
            found[at] = self._names_one(_text_at(column, at))
        return found


def keys_of_type(subjects: Subjects, kind: pa.DataType) -> list[object]:
    """Return the keys of subjects as values of a type of texts, bytes or numbers; none of those that no value equals.

    >>> subjects = Subjects("customer", ("17.0", "C-17"))
    >>> keys_of_type(subjects, pa.int32()), keys_of_type(subjects, pa.string()), keys_of_type(subjects, pa.date32())
    ([17], ['17.0', 'C-17'], [])
    """
    values = list[object]()
    if _is_text(kind):
        values = [_cast(value, kind) for value in subjects.values]
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            values += [_uuid(value) for value in subjects.values]
    elif _is_number(kind):
        values = [_cast(number, kind) for number in subjects.numbers]
    return [value for value in values if value is not None]


def plain_texts(text: str) -> Iterator[str]:
    r"""Yield a text, and its other forms.

    >>> list(plain_texts('"O\\u0027Neil"'))[-1], list(plain_texts(r'{\"a\":\"b\\/c\"}'))[-1]
    ('"O\'Neil"', '{"a":"b/c"}')
    >>> "C 17" in list(plain_texts("x=C%2017"))[-1], list(plain_texts("Sa\u0303o"))[-1] == "S\u00e3o"
    (True, True)
    """
    yield text
    plain = text
    for _ in range(3):  # JSON within JSON within JSON: a statistic of a record
        before, plain = plain, html.unescape(unquote(_ESCAPE.sub(_unescaped, _COLOUR.sub("", plain))))
        if plain == before:
            break
        yield plain
    plain = unicodedata.normalize("NFC", plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    yield plain
    yield plain.replace("''", "'").replace('""', '"')


def _line_end(text: str, before: int) -> int:
    """Return the end of the last line that ends before a place, or the place if that is far."""
    end = text.rfind("\n", 0, before) + 1
    return end if before - end < _STEP else before


def _text_at(column: pa.Array, at: int) -> str:
    value = column[at].as_py()
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _values_of_record(record: object) -> Iterator[tuple[str, object]]:
    """Yield the values of a record, also those that bronze keeps as JSON in `_rescued`."""
    for path, value in _values_of(record, ""):
        yield path, value
        if path == "_rescued" and isinstance(value, str):
            with suppress(ValueError):
                yield from _values_of(json.loads(value, parse_float=Decimal), "")


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else _CONTROLS.get(found[2], found[2])


def _values_of(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Yield the values within a record, each with the path of its field in small letters."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _values_of(part, f"{path}.{name}".lower().lstrip("."))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _values_of(part, path)
    else:
        yield path, value


def _plain(column: pa.Array) -> pa.Array:
    """Return values in a type that Arrow's functions take, which lack views, dictionaries and bytes of fixed size."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(column.storage)
    if pa.types.is_dictionary(kind):
        return _plain(column.dictionary_decode())
    if pa.types.is_string_view(kind):  # as delta-rs writes texts
        return column.cast(pa.large_string())
    if pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return column.cast(pa.large_binary())
    if pa.types.is_map(kind):
        return column.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
    if pa.types.is_fixed_size_list(kind):
        return column.cast(pa.list_(kind.value_field))
    return column


def _may_hold_key(kind: pa.DataType) -> bool:
    """Whether values of a type may be keys, or texts that name one."""
    if isinstance(kind, pa.BaseExtensionType):
        return _may_hold_key(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _may_hold_key(kind.value_type)
    if pa.types.is_nested(kind):
        return any(_may_hold_key(kind.field(number).type) for number in range(kind.num_fields))
    views = pa.types.is_string_view(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind)
    return views or _is_text(kind) or _is_number(kind)


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return any(is_kind(kind) for is_kind in (types.is_string, types.is_large_string, *_BYTES))


_BYTES = (pa.types.is_binary, pa.types.is_large_binary)


def _is_number(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in (pa.types.is_integer, pa.types.is_decimal, pa.types.is_floating))


def _cast(value: str | Decimal, kind: pa.DataType) -> object | None:
    """Return a key in the type of a column; None if no value of that type equals it."""
    try:
        if pa.types.is_integer(kind) and isinstance(value, Decimal):
            return cast(object, pa.scalar(int(value), kind).as_py()) if value == int(value) else None
        if pa.types.is_floating(kind):
            return float(value)
        return cast(object, pa.scalar(value, kind).as_py())
    except (pa.ArrowException, OverflowError, TypeError):
        return None


def _uuid(value: str) -> bytes | None:
    try:
        return UUID(value).bytes
    except ValueError:
        return None


def _bools(values: pa.Array) -> Mask:
    return cast(Mask, values.fill_null(False).to_numpy(zero_copy_only=False))
