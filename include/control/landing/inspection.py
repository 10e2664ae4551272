"""The inspection of landing files before Spark reads them: the checksum, the columns, and the defects."""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

from include.contracts.spec.bronze_sources import LandingSource
from include.contracts.spec.record_fields import fields_among, fields_of, path_text, paths_of, quoted
from include.contracts.spec.table_spec import BronzeSpec
from include.control.landing.formats.avro_files import MAGIC, read_avro
from include.control.landing.formats.avro_values import needs_copy
from include.control.landing.formats.compression import PackingCheck, open_unpacked, packing_of
from include.control.landing.formats.json_arrays import is_array, require_array
from include.control.landing.formats.parquet_files import digest, layout_of, parquet_file
from include.control.landing.landing import Landing, LandingFile
from include.control.log.batch import COPIED, JSON_ARRAY, MIXED_LINE_ENDS, FileFact
from include.errors import first_line

_CHUNK = 1 << 20

# Values may have any length; the default limit of Python's reader is 128 KiB.
csv.field_size_limit(2**31 - 1)
_JSON_LINES_READ = 20
_PARQUET_MAGIC, _ENCRYPTED_MAGIC = b"PAR1", b"PARE"


class Content(NamedTuple):
    """The columns and the layout of a file, as in `FileFact`, and the columns that cannot be read, with the cause."""

    columns: tuple[str, ...] = ()
    layout: str = ""
    unread: Mapping[str, str] = MappingProxyType({})


def inspect(file: FileFact, landing: Landing, spec: BronzeSpec, needed: Collection[str] = ()) -> FileFact:
    """Return the file with its checksum, its columns, and its defect if it cannot be loaded.

    A file may lack some declared columns, but not all, and none of `needed`. Every byte is read once, to find a
    truncated file before Spark does; an object of a bucket is read only as far as necessary.

    Raises:
        NotReadyError: the storage does not deliver the file; this is no defect.
        StorageError: the storage refuses.
    """
    if defect := landing.name_defect(file.path):
        return replace(file, defect=defect)
    path = LandingFile(landing, file.path)
    try:
        checksum, defect = _checksum_and_defect(path, file.checksum)
        content, misfit = _content(path, spec, needed) if file.size and not defect else (Content(), "")
    except FileNotFoundError:
        return replace(file, checksum="", defect="it went away while it was read")
    return replace(file, checksum=checksum, defect=defect or misfit, columns=content.columns, layout=content.layout)


def _content(path: LandingFile, spec: BronzeSpec, needed: Collection[str]) -> tuple[Content, str]:
    """Return (the content of the file, why it does not fit the spec)."""
    try:
        content = _CONTENT_OF[spec.landing_source.format](path, spec.landing_source)
    except ValueError as error:
        return Content(), first_line(error)
    if spec.landing_source.format == "csv" and not spec.landing_source.header:
        return content._replace(columns=tuple(spec.columns)), ""
    try:
        found = fields_among(content.columns, spec)
    except ValueError as error:
        return content, first_line(error)
    if unread := [f"{field} ({content.unread[field]})" for field in found.values() if field in content.unread]:
        return content, f"its column {unread[0]} cannot be read; have it written as another type, or declare it no more"
    missing = {name: field for name, field in fields_of(spec).items() if name not in found}
    defect = dict.fromkeys(field for name, field in missing.items() if not found or name in needed)
    if not defect or not content.columns:
        return content, ""
    columns = ", ".join(content.columns)
    paths = [path_text(path) for name, path in paths_of(spec).items() if name in missing and len(path) > 1]
    likely = [f"; from: {quoted(path)!r} reads the field of this name" for path in paths if path in content.columns]
    text = f"has no column {', '.join(defect)}; its columns are {columns}: correct the file or the spec"
    return content, text + "".join(likely)


def columns_of(path: LandingFile, source: LandingSource) -> tuple[str, ...]:
    """Return the names of a file's columns; none for JSON, whose records name their fields one by one.

    Raises:
        ValueError: it does not have the format of the source.
    """
    return _CONTENT_OF[source.format](path, source).columns


def _checksum_and_defect(path: LandingFile, tag: str) -> tuple[str, str]:
    """Return (the digest of the stored bytes, the defect of their compression).

    If there is an entity tag, it is the digest, and only compressed files are read to their end.
    """
    digest, packing = hashlib.sha256(), PackingCheck(path.name)
    with path.open() as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            packing.feed(chunk)
            if tag and not packing_of(path.name):
                break
    return tag or digest.hexdigest(), packing.defect()


def _json_content(path: LandingFile, source: LandingSource) -> Content:
    """Return the layout; of JSON lines, refuse only a file in which no line can be an object."""
    with _open(path) as stream:
        has_array = is_array(io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace"))
    with _open(path) as stream:
        if has_array:
            require_array(io.TextIOWrapper(stream, encoding="utf-8-sig"))
            return Content(layout=JSON_ARRAY)
        lines = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace")
        starts = [line.lstrip()[:1] for line in islice(lines, _JSON_LINES_READ) if line.strip()]
    if starts and "{" not in starts:
        raise ValueError(
            f"{path.name} holds neither JSON lines nor an array; the spec's source.format is {source.format}"
        )
    return Content()


def _csv_content(path: LandingFile, source: LandingSource) -> Content:
    if _head(path).startswith(_PARQUET_MAGIC):
        raise ValueError(f"Parquet data under the name {path.name}; the spec's source.format is {source.format}")
    line_ends, last = _line_ends(path, source), [""]
    with _open(path) as stream:
        lines = _clean_lines(_text(stream, source, newline=""), last)
        try:
            header = next(csv.reader(lines, **_csv_dialect(source)), [])
        except csv.Error as error:
            raise ValueError(
                f"{path.name} does not begin with a CSV header ({error}); the spec's source.format is {source.format}"
            ) from error
    # A column with an empty or repeated name is named by its number.
    names = (name if name and name not in header[:at] else f"column {at + 1}" for at, name in enumerate(header))
    return Content(tuple(names), _record_end(path, source, line_ends, _end_of(last[0])))


def _record_end(path: LandingFile, source: LandingSource, line_ends: set[str], header_end: str) -> str:
    """Return the layout of a CSV file: the end of its records.

    A single carriage return is text, unless it ends the header.

    Raises:
        ValueError: records end in several ways, and values contain line ends: Spark cannot distinguish them.
    """
    ends = line_ends if header_end == "\r" else line_ends - {"\r"}
    if len(ends) > 1:
        last, counts = [""], Counter[str]()
        with _open(path) as stream:
            lines = _text(stream, source, newline="" if header_end == "\r" else "\n")
            records = csv.reader(_clean_lines(lines, last), **_csv_dialect(source))
            counts.update(_end_of(last[0]) for _ in records)
        ends = counts.keys() - {""}
        values_have_ends = records.line_num > counts.total() or line_ends - ends
        if len(ends) > 1 and (values_have_ends or source.encoding.startswith("UTF-16")):
            raise ValueError(
                "its records end in several ways, and values hold line ends too; have it delivered with one kind"
            )
    return MIXED_LINE_ENDS if len(ends) > 1 else "".join(ends - {"\n"})


def _text(stream: BinaryIO, source: LandingSource, newline: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(stream, encoding=source.encoding.replace("UTF-8", "UTF-8-sig"), newline=newline)


def _clean_lines(lines: Iterable[str], last: list[str]) -> Iterator[str]:
    """Yield lines without the carriage returns that Python's reader refuses; keep the current line in `last`."""
    for last[0] in lines:
        end = _end_of(last[0])
        yield last[0].removesuffix(end).replace("\r", " ") + end


def _end_of(line: str) -> str:
    return next((end for end in ("\r\n", "\n", "\r") if line.endswith(end)), "")


def _csv_dialect(source: LandingSource) -> dict[str, Any]:
    """Return the CSV options of the source as arguments of Python's reader."""
    doubled = source.escape == source.quote
    escape = None if doubled else source.escape
    return {"delimiter": source.delimiter, "quotechar": source.quote, "doublequote": doubled, "escapechar": escape}


def _line_ends(path: LandingFile, source: LandingSource) -> set[str]:
    """Return the line ends of a file, within quotes or not, after reading all of it.

    Raises:
        ValueError: it is no text of the source's encoding: Spark would replace the wrong bytes silently.
    """
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(source.encoding)(), translate=False)
    with _open(path) as stream:
        try:
            while chunk := stream.read(_CHUNK):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"not {source.encoding} text ({error.reason}); correct source.encoding of the spec, or the file"
            ) from error
    line_ends = decoder.newlines or ()
    return {line_ends} if isinstance(line_ends, str) else set(line_ends)


def _parquet_content(path: LandingFile, source: LandingSource) -> Content:
    if _head(path) not in (_PARQUET_MAGIC, _ENCRYPTED_MAGIC):
        raise ValueError(f"{path.name} is not a Parquet file; the spec's source.format is {source.format}")
    with path.open() as content:
        file = parquet_file(content)
        layout = layout_of(file)
        unread = {**file.unread, **(file.not_copied if layout.startswith(COPIED) else {})}
        return Content(_readable_names(file.columns), layout, unread)


def parquet_rows(path: LandingFile) -> int:
    """Return the number of rows by the metadata of a Parquet file."""
    with path.open() as content:
        return parquet_file(content).rows


def _avro_content(path: LandingFile, source: LandingSource) -> Content:
    if not _head(path).startswith(MAGIC):
        raise ValueError(f"{path.name} is not an Avro file; the spec's source.format is {source.format}")
    with path.open() as stream:
        fields = read_avro(stream)
    way = COPIED if needs_copy(fields) else ""
    return Content(_readable_names(field.name for field in fields), way + digest([field.kind for field in fields]))


def _readable_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the columns of a Parquet or Avro file.

    Raises:
        ValueError: two of them differ only in case: Spark reads no such file, and would stop the files beside it.
    """
    first: dict[str, str] = {}
    for name in names:
        if name.lower() in first:
            other = first[name.lower()]
            raise ValueError(f"Spark cannot read both of its columns {other} and {name}; have one of them renamed")
        first[name.lower()] = name
    return tuple(first.values())


def _head(path: LandingFile) -> bytes:
    with _open(path) as stream:
        return stream.read(4)


@contextmanager
def _open(path: LandingFile) -> Iterator[BinaryIO]:
    with path.open() as stored, open_unpacked(path.name, stored) as content:
        yield content


_CONTENT_OF = {"json": _json_content, "csv": _csv_content, "parquet": _parquet_content, "avro": _avro_content}
