"""A landing file without the records of subjects; all other records keep their bytes, or in Parquet their values."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import zstandard

from millrace.contracts.spec.bronze_sources import LandingSource
from millrace.contracts.spec.record_fields import FieldPath, paths_of
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.landing.formats.compression import open_unpacked, packing_of
from millrace.control.landing.formats.csv_files import csv_dialect
from millrace.control.landing.formats.json_arrays import MAX_ARRAY_CHARS
from millrace.control.landing.formats.parquet_files import leaves_of, parquet_file
from millrace.erase.subjects import Subjects, number_in

_ROWS = 4096
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_EXACT = ("UTF-8", "ISO-8859-1", "US-ASCII", "UTF-16BE", "UTF-16LE")
"""The encodings that give every text its own bytes back; the others begin with a mark of their order."""

_BLANKS = re.compile(r"[ \t\n\r]*")
_OBJECTS_AS_PAIRS = json.JSONDecoder(object_pairs_hook=tuple, parse_int=str, parse_float=str)
"""Of a field that is there twice both values are seen, and numbers keep their digits."""


class NotExactError(ValueError):
    """A file that cannot be written again without changes of other records; the text says why."""


@dataclass(frozen=True)
class KeyPlace:
    """Where the records of a source have a key.

    Attributes:
        column: the column of the table that gets it.
        path: where the record has it.
        is_number: whether the column holds numbers, which are equal by value.
    """

    column: str
    path: FieldPath
    is_number: bool

    def has_one_of(self, subjects: Subjects, value: object) -> bool:
        """Whether a value is the key of a subject, as the column would hold it."""
        if self.is_number:
            return value is not None and number_in(str(value).strip()) in subjects.numbers
        return value is not None and str(value) in subjects.values


def key_places(spec: BronzeSpec, kind: str) -> list[KeyPlace]:
    """Return where the records of a table's source have keys of a kind."""
    paths = paths_of(spec)
    columns = [column for column, of_kind in spec.subject_keys.items() if of_kind == kind]
    return [KeyPlace(column, paths[column], spec.columns[column].type != "string") for column in columns]


def key_fields(spec: BronzeSpec, kind: str) -> set[str]:
    """Return the fields that have keys of a kind, as a search names them: the elements of a list have its name."""
    return {".".join(step for step in place.path if isinstance(step, str)) for place in key_places(spec, kind)}


@dataclass(frozen=True)
class Stripping:
    """Writes the files of a source without the records of subjects.

    Attributes:
        spec: the bronze table of the source.
        subjects: the subjects.
    """

    spec: BronzeSpec
    subjects: Subjects

    def strip(self, name: str, stored: BinaryIO, target: BinaryIO) -> int:
        """Write a file without the records of the subjects, and return how many these are.

        Args:
            name: its name, by which it is compressed or not.
            stored: its bytes, from the start.
            target: gets the bytes of the new file.

        Raises:
            NotExactError: other records would change.
            ValueError: it does not have the format of the source.
        """
        source = self.spec.landing_source
        if source.format == "parquet":
            return self._strip_parquet(stored, target)
        if source.format == "avro":
            raise NotExactError("Avro files are not written again")
        with open_unpacked(name, stored) as content, _packed(name, target) as written:
            is_csv, removed = source.format == "csv", 0
            pieces = self._csv_records(content, source) if is_csv else self._json_records(content)
            for piece, is_erased in pieces:
                removed += is_erased
                if not is_erased:
                    written.write(piece)
            return removed

    @property
    def _places(self) -> list[KeyPlace]:
        return key_places(self.spec, self.subjects.kind)

    def _same(self, name: str) -> str:
        return name.lower() if self.spec.source.field_names == "any_case" else name

    def _json_records(self, content: BinaryIO) -> Iterator[tuple[bytes, bool]]:
        """Yield the pieces of a JSON file, and whether each is a record of a subject."""
        stream = io.BufferedReader(cast(io.RawIOBase, content))
        if stream.peek(len(_BYTE_ORDER_MARK)).startswith(_BYTE_ORDER_MARK):
            yield stream.read(len(_BYTE_ORDER_MARK)), False
        is_array = None
        for line in stream:
            if is_array is None and line.strip():
                is_array = line.lstrip().startswith(b"[")
            if is_array:
                yield from self._of_array((line + stream.read()).decode())
                return
            # Spark ends a line also at a single carriage return.
            for part in filter(None, re.split(rb"(?<=\r)(?!\n)", line)):
                yield part, self._is_erased_line(part)

    def _is_erased_line(self, line: bytes) -> bool:
        try:
            record = _OBJECTS_AS_PAIRS.decode(line.decode())
        except ValueError:  # It is no record: bronze keeps it in the quarantine, and a search finds whom it names.
            return False
        return self._is_erased(record)

    def _is_erased(self, record: object) -> bool:
        return any(
            place.has_one_of(self.subjects, value)
            for place in self._places
            for value in _values_at(record, place.path, self._same)
        )

    def _of_array(self, text: str) -> Iterator[tuple[bytes, bool]]:
        """Yield the pieces of a JSON array; the first element that stays has no comma before it."""
        if len(text) > MAX_ARRAY_CHARS:
            raise ValueError("an array that is too large to be loaded")
        opened = text.index("[") + 1
        yield text[:opened].encode(), False
        begin, end = _blanks_end(text, opened), opened
        before, is_first = text[opened:begin], True
        while text[begin : begin + 1] != "]":
            record, after = _OBJECTS_AS_PAIRS.raw_decode(text, begin)
            is_erased = self._is_erased(record)
            yield f"{before if is_first else text[end:begin]}{text[begin:after]}".encode(), is_erased
            is_first, end = is_first and is_erased, after
            begin = _blanks_end(text, after)
            if text[begin : begin + 1] == ",":
                begin = _blanks_end(text, begin + 1)
        yield text[end:].encode(), False

    def _csv_records(self, content: BinaryIO, source: LandingSource) -> Iterator[tuple[bytes, bool]]:
        """Yield the records of a CSV file, and whether each is of a subject; its header is none."""
        if source.encoding not in _EXACT:
            raise NotExactError(f"a file in {source.encoding} is not written again")
        text = io.TextIOWrapper(content, source.encoding, newline="")
        first = text.readline()
        if first.startswith("\ufeff"):
            yield "\ufeff".encode(source.encoding), False
            first = first[1:]
        # A single carriage return is text, unless it ends the header.
        rest = text if first.endswith("\r") else _joined(text)
        lines = map(partial(_require_same_values, source), _raw_records([first] if first else [], rest, source))
        header = next(lines, None) if source.header else None
        names = list(self.spec.columns) if header is None else [self._same(name) for name in header[1]]
        if header is not None:
            yield header[0].encode(source.encoding), False
        places = [
            (at, place)
            for place in self._places
            for at, name in enumerate(names)
            if name == (place.column if header is None else self._same(str(place.path[0])))
        ]
        for raw, values in lines:
            erased = any(
                place.has_one_of(self.subjects, value)
                for at, place in places
                if at < len(values)
                for value in _values_at(values[at], place.path[1:], self._same)
            )
            yield raw.encode(source.encoding), erased

    def _strip_parquet(self, stored: BinaryIO, target: BinaryIO) -> int:
        content = parquet_file(stored)
        file, leaves = content.file, leaves_of(content.file)
        old_times = [leaf.path for leaf in leaves if leaf.physical_type == "INT96"]
        if content.unread or content.variants or not set(old_times) <= set(file.schema_arrow.names):
            raise NotExactError("a Parquet file with columns of a type that is not written again")
        # Arrow reads these times as nanoseconds, unless the reader of landing files wants microseconds.
        whole = pq.ParquetFile(stored) if old_times else file
        metadata, removed = file.metadata, 0
        options: dict[str, Any] = {
            "version": metadata.format_version,
            "compression": {leaf.path: _codec(metadata, number) for number, leaf in enumerate(leaves)},
            "store_schema": _ARROW in (metadata.metadata or {}),
            "use_deprecated_int96_timestamps": bool(old_times),
        }
        with pq.ParquetWriter(target, whole.schema_arrow, **options) as writer:
            for group in range(whole.num_row_groups):
                rows = whole.read_row_group(group)
                _require_times(rows, file.read_row_group(group, columns=old_times), old_times)
                erased = [self._is_erased(record) for record in _records(rows, self._places, self._same)]
                removed += sum(erased)
                if not all(erased):
                    writer.write_table(rows.filter(pa.array([not each for each in erased], pa.bool_())))
        target.seek(0)
        written = pq.ParquetFile(target)
        if not written.schema.equals(file.schema) or _notes(written.metadata) != _notes(metadata):
            raise NotExactError("a Parquet file with columns, or notes, that would not stay as they are")
        return removed


def _require_times(nanoseconds: pa.Table, microseconds: pa.Table, names: Iterable[str]) -> None:
    """Require that times are within the years 1677 to 2262, beyond which nanoseconds begin again.

    Raises:
        NotExactError: they are not, or have fractions of a microsecond before 1970.
    """
    for name in names:
        if not pc.cast(nanoseconds[name], microseconds[name].type, safe=False).equals(microseconds[name]):
            raise NotExactError(f"a Parquet file with times in {name}, of the old type INT96, that Arrow cannot keep")


_ARROW = b"ARROW:schema"


def _notes(metadata: pq.FileMetaData) -> dict[bytes, bytes]:
    return {name: text for name, text in (metadata.metadata or {}).items() if name != _ARROW}


def _codec(metadata: pq.FileMetaData, leaf: int) -> str:
    codec = metadata.row_group(0).column(leaf).compression if metadata.num_row_groups else "UNCOMPRESSED"
    return "NONE" if codec == "UNCOMPRESSED" else codec


def _records(rows: pa.Table, places: Sequence[KeyPlace], same: Callable[[str], str]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows as pairs of names and values, with the columns that have keys alone."""
    wanted = {same(str(place.path[0])) for place in places}
    names = [name for name in rows.column_names if same(name) in wanted]
    columns = [[_as_pairs(value) for value in rows[name].to_pylist()] for name in names]
    for at in range(rows.num_rows):
        yield tuple((name, column[at]) for name, column in zip(names, columns, strict=True))


def _as_pairs(value: object) -> object:
    """Return a value with structs as pairs of names and values, as `_values_at` takes them."""
    if isinstance(value, dict):
        return tuple((name, _as_pairs(part)) for name, part in value.items())
    return [_as_pairs(part) for part in value] if isinstance(value, list) else value


def _values_at(value: object, path: FieldPath, same: Callable[[str], str]) -> Iterator[object]:
    """Yield the values of a record at a path: several if a name is there twice."""
    if not path:
        yield value
        return
    if isinstance(value, str):  # JSON within a text
        try:
            value = _OBJECTS_AS_PAIRS.decode(value)
        except ValueError:
            return
    step = path[0]
    if isinstance(step, int):
        parts = value[step : step + 1] if isinstance(value, list) else []
    else:
        parts = [part for name, part in value if same(name) == same(step)] if isinstance(value, tuple) else []
    for part in parts:
        yield from _values_at(part, path[1:], same)


def _blanks_end(text: str, at: int) -> int:
    return cast("re.Match[str]", _BLANKS.match(text, at)).end()


def _joined(lines: Iterable[str]) -> Iterator[str]:
    r"""Yield lines that end with `\n`: a single carriage return ends none."""
    kept = ""
    for line in lines:
        kept += line
        if line.endswith("\n"):
            yield kept
            kept = ""
    if kept:
        yield kept


def _raw_records(first: Iterable[str], rest: Iterable[str], source: LandingSource) -> Iterator[tuple[str, list[str]]]:
    """Yield each record of a CSV file as it is written, and its values."""
    taken = list[str]()

    def lines() -> Iterator[str]:
        for part in (first, rest):
            for line in part:
                taken.append(line)
                body = line.rstrip("\r\n")
                yield body.replace("\r", " ") + line[len(body) :]

    if not source.multi_line:
        for line in lines():
            yield taken.pop(), next(csv.reader([line], **csv_dialect(source)), [])
        return
    try:
        for values in csv.reader(lines(), **csv_dialect(source)):
            yield "".join(taken), values
            taken.clear()
    except csv.Error as error:
        raise ValueError(f"it is no CSV file of the source ({error})") from error


def _require_same_values(source: LandingSource, record: tuple[str, list[str]]) -> tuple[str, list[str]]:
    """Return a record whose values, and end, Spark sees alike: it takes an escape for one within quotes alone.

    Raises:
        NotExactError: an escape stands elsewhere, or before another character than it is for.
    """
    if source.escape != source.quote and source.escape in record[0]:
        quote, escape = map(re.escape, (source.quote, source.escape))
        quoted = f"{quote}(?:(?!{quote}|{escape}).|{escape}(?:{quote}|{escape}))*{quote}"
        if source.escape in re.sub(quoted, "", record[0], flags=re.DOTALL):
            raise NotExactError(f"a record has {source.escape} where it escapes nothing")
    return record


def _packed(name: str, target: BinaryIO) -> AbstractContextManager[BinaryIO]:
    """Return what compresses a new file as its name says; the same content has the same bytes each time."""
    packing = packing_of(name)
    if packing is None:
        return nullcontext(target)
    if packing.name == "gzip":
        return cast(AbstractContextManager[BinaryIO], gzip.GzipFile("", "wb", fileobj=target, mtime=0))
    return cast(AbstractContextManager[BinaryIO], zstandard.ZstdCompressor().stream_writer(target, closefd=False))
