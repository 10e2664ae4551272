"""Looks into landing files before Spark meets them: what identifies each, and whether it can be loaded."""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from include.contracts.spec.bronze_sources import LandingSource
from include.contracts.spec.table_spec import BronzeSpec
from include.control.landing.formats.avro_files import MAGIC, read_avro
from include.control.landing.formats.compression import PackingCheck, packing_of, unpacked
from include.control.landing.formats.json_arrays import is_array, require_array
from include.control.landing.landing import LandedFile, Landing
from include.control.log.batch import JSON_ARRAY, MIXED_LINE_ENDS, FileFact
from include.errors import first_line

_CHUNK = 1 << 20

# Values may have any length; Python's reader stops at 128 KiB by itself.
csv.field_size_limit(2**31 - 1)
_LINES_LOOKED_AT = 20
_PARQUET_MAGIC = b"PAR1"


class Content(NamedTuple):
    """What a file's content says of itself, as `FileFact` keeps it."""

    columns: tuple[str, ...] = ()
    layout: str = ""


def inspect(file: FileFact, landing: Landing, spec: BronzeSpec, needed: Collection[str] = ()) -> FileFact:
    """The file with its checksum, its columns, and the defect that forbids loading it, if there is one.

    A file may lack declared columns, but not all of them, and none of `needed`.

    Every byte is read once, but those of a bucket that need not be: that is what tells a truncated file before Spark
    meets it.

    Raises:
        NotReadyError: the storage does not hand it over, which says nothing of its content.
        StorageError: the storage refuses.
    """
    path = LandedFile(landing, file.path)
    try:
        checksum, defect = _read_through(path, file.checksum)
        content, misfit = _content(path, spec, needed) if file.size and not defect else (Content(), "")
    except FileNotFoundError:
        return replace(file, checksum="", defect="it went away while it was read")
    return replace(file, checksum=checksum, defect=defect or misfit, **content._asdict())


def _content(path: LandedFile, spec: BronzeSpec, needed: Collection[str]) -> tuple[Content, str]:
    """(what the file says of itself, why it does not do)."""
    try:
        content = _CONTENT_OF[spec.landing_source.format](path, spec.landing_source)
    except ValueError as error:
        return Content(), first_line(error)
    if spec.landing_source.format == "csv" and not spec.landing_source.header:
        return content._replace(columns=tuple(spec.columns)), ""
    return content, _missing_columns(content.columns, spec, needed)


def _read_through(path: LandedFile, tag: str) -> tuple[str, str]:
    """(checksum, defect): the digest of the bytes as they lie there, and what is wrong with their compression.

    Where an entity tag stands for the content, only compressed files are read to their end.
    """
    digest, packing = hashlib.sha256(), PackingCheck(path.name)
    with path.open() as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            packing.feed(chunk)
            if tag and not packing_of(path.name):
                break
    return tag or digest.hexdigest(), packing.defect()


def _missing_columns(columns: tuple[str, ...], spec: BronzeSpec, needed: Collection[str]) -> str:
    missing = [name for name in spec.columns if name not in columns]
    broken = missing if len(missing) == len(spec.columns) else [name for name in missing if name in needed]
    if not broken or not columns:
        return ""
    return f"has no column {', '.join(broken)}; its columns are {', '.join(columns)}: correct the file or the spec"


def _json_content(path: LandedFile, source: LandingSource) -> Content:
    """JSON lines name their fields in every line; refused is only a file in which no line can be an object."""
    with _opened(path) as stream:
        if is_array(io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace")):
            return _json_array(path)
    with _opened(path) as stream:
        lines = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace")
        starts = [line.lstrip()[:1] for line in islice(lines, _LINES_LOOKED_AT) if line.strip()]
    if starts and "{" not in starts:
        msg = f"{path.name} holds neither JSON lines nor an array; the spec's source.format is {source.format}"
        raise ValueError(msg)
    return Content()


def _json_array(path: LandedFile) -> Content:
    with _opened(path) as stream:
        require_array(io.TextIOWrapper(stream, encoding="utf-8-sig"))
    return Content(layout=JSON_ARRAY)


def _csv_content(path: LandedFile, source: LandingSource) -> Content:
    if _head(path).startswith(_PARQUET_MAGIC):
        msg = f"Parquet data under the name {path.name}; the spec's source.format is {source.format}"
        raise ValueError(msg)
    kinds, last = _line_ends(path, source), [""]
    with _opened(path) as stream:
        lines = _noted(_text(stream, source, newline=""), last)
        try:
            header = next(csv.reader(lines, **_csv_dialect(source)), [])
        except csv.Error as error:
            msg = f"{path.name} does not begin with a CSV header ({error}); the spec's source.format is {source.format}"
            raise ValueError(msg) from error
    return Content(_distinct(header), _record_end(path, source, kinds, _end_of(last[0])))


def _record_end(path: LandedFile, source: LandingSource, kinds: set[str], of_header: str) -> str:
    """What ends the records of a CSV file: a layout. A lone carriage return is text, unless it ends the header too.

    Raises:
        ValueError: records end in several ways, and values hold line ends: Spark cannot tell them apart.
    """
    ends = kinds if of_header == "\r" else kinds - {"\r"}
    if len(ends) > 1:
        last, of_records = [""], Counter[str]()
        with _opened(path) as stream:
            lines = _text(stream, source, newline="" if of_header == "\r" else "\n")
            records = csv.reader(_noted(lines, last), **_csv_dialect(source))
            of_records.update(_end_of(last[0]) for _ in records)
        ends = of_records.keys() - {""}
        holds_ends = records.line_num > of_records.total() or kinds - ends
        if len(ends) > 1 and (holds_ends or source.encoding.startswith("UTF-16")):
            msg = "its records end in several ways, and values hold line ends too; have it delivered with one kind"
            raise ValueError(msg)
    return MIXED_LINE_ENDS if len(ends) > 1 else "".join(ends - {"\n"})


def _text(stream: BinaryIO, source: LandingSource, newline: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(stream, encoding=source.encoding.replace("UTF-8", "UTF-8-sig"), newline=newline)


def _noted(lines: Iterable[str], last: list[str]) -> Iterator[str]:
    """The lines, where a carriage return within them, which Python's reader refuses, is a blank; `last` is the last."""
    for last[0] in lines:
        end = _end_of(last[0])
        yield last[0].removesuffix(end).replace("\r", " ") + end


def _end_of(line: str) -> str:
    return next((end for end in ("\r\n", "\n", "\r") if line.endswith(end)), "")


def _distinct(header: list[str]) -> tuple[str, ...]:
    """The names of the columns; one without a name, or with that of an earlier one, is named by its place."""
    names = enumerate(header)
    return tuple(name if name and name not in header[:at] else f"column {at + 1}" for at, name in names)


def _csv_dialect(source: LandingSource) -> dict[str, Any]:
    """The source's way to write CSV, in the words of Python's reader."""
    doubled = source.escape == source.quote
    escape = None if doubled else source.escape
    return {"delimiter": source.delimiter, "quotechar": source.quote, "doublequote": doubled, "escapechar": escape}


def _line_ends(path: LandedFile, source: LandingSource) -> set[str]:
    """Which line ends a file holds, within quotes or not; it is read to its end.

    Raises:
        ValueError: it is no text of the source's encoding: Spark would put a mark for what is not.
    """
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(source.encoding)(), translate=False)
    with _opened(path) as stream:
        try:
            while chunk := stream.read(_CHUNK):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            msg = f"not {source.encoding} text ({error.reason}); correct source.encoding of the spec, or the file"
            raise ValueError(msg) from error
    found = decoder.newlines or ()
    return {found} if isinstance(found, str) else set(found)


def _parquet_content(path: LandedFile, source: LandingSource) -> Content:
    if not _head(path).startswith(_PARQUET_MAGIC):
        msg = f"{path.name} is not a Parquet file; the spec's source.format is {source.format}"
        raise ValueError(msg)
    try:
        with path.open() as content:
            schema = pq.read_schema(content)
    except (ValueError, OSError) as error:  # Arrow raises either, for one footer or the other
        msg = f"not a sound Parquet file ({str(error).strip()}); have it delivered again"
        raise ValueError(msg) from error
    return Content(tuple(schema.names), _digest([str(kind) for kind in schema.types]))


def parquet_rows(path: LandedFile) -> int:
    """How many rows a Parquet file says that it holds."""
    with path.open() as content:
        return int(pq.read_metadata(content).num_rows)


def is_whole_parquet(path: LandedFile) -> bool:
    """Whether each page of a Parquet file can be read; only what Spark has not read to its end is worth this.

    Raises:
        NotReadyError, StorageError: the storage does not hand it over.
    """
    try:
        with path.open() as content:
            for _ in pq.ParquetFile(content).iter_batches():
                pass
    except (pa.ArrowException, OSError):
        return False
    return True


def _avro_content(path: LandedFile, source: LandingSource) -> Content:
    if not _head(path).startswith(MAGIC):
        msg = f"{path.name} is not an Avro file; the spec's source.format is {source.format}"
        raise ValueError(msg)
    with path.open() as stream:
        fields = read_avro(stream)
    return Content(tuple(field.name for field in fields), _digest([field.kind for field in fields]))


def _digest(kinds: list[Any]) -> str:
    """Tells apart files whose columns have the same names and other types, which Spark does not read as one."""
    return hashlib.sha256(json.dumps(kinds, sort_keys=True).encode()).hexdigest()[:16]


def _head(path: LandedFile) -> bytes:
    with _opened(path) as stream:
        return stream.read(4)


@contextmanager
def _opened(path: LandedFile) -> Iterator[BinaryIO]:
    with path.open() as stored, unpacked(path.name, stored) as content:
        yield content


_CONTENT_OF = {"json": _json_content, "csv": _csv_content, "parquet": _parquet_content, "avro": _avro_content}
