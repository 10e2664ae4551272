"""Looks into landing files before Spark meets them: what identifies each, and whether it can be loaded."""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, BinaryIO, cast

import pyarrow.parquet as pq

from include.contracts.bronze_sources import LandingSource
from include.contracts.table_spec import BronzeSpec
from include.control.batch import FileFact
from include.control.landing import LandedFile, Landing

_CHUNK = 1 << 20
_LINES_LOOKED_AT = 20
_GZIP_MAGIC = b"\x1f\x8b"
_PARQUET_MAGIC = b"PAR1"


def inspect(file: FileFact, landing: Landing, spec: BronzeSpec) -> FileFact:
    """The file with its checksum, its columns, and the defect that forbids loading it, if there is one.

    Every byte is read once, but those of a bucket that need not be: that is what tells a truncated gzip before Spark
    meets it.
    """
    path = LandedFile(landing, file.path)
    try:
        checksum, defect = _read_through(path, file.checksum)
        columns, misfit = _columns(path, spec) if file.size and not defect else ((), "")
    except FileNotFoundError:
        return file.model_copy(update={"checksum": "", "defect": "it went away while it was read"})
    return file.model_copy(update={"checksum": checksum, "defect": defect or misfit, "columns": columns})


def _columns(path: LandedFile, spec: BronzeSpec) -> tuple[tuple[str, ...], str]:
    """(the file's own columns, why they do not do)."""
    try:
        columns = _COLUMNS_OF[spec.landing_source.format](path, spec.landing_source)
    except ValueError as error:
        return (), str(error).splitlines()[0]
    if spec.landing_source.format == "csv" and not spec.landing_source.header:
        return tuple(spec.columns), ""
    return columns, _missing_columns(columns, spec)


def _read_through(path: LandedFile, tag: str) -> tuple[str, str]:
    """(checksum, defect): the digest of the bytes as they lie there, and what is wrong with their compression.

    Where an entity tag stands for the content, only compressed files are read to their end.
    """
    digest, inflate = hashlib.sha256(), zlib.decompressobj(wbits=31)
    head, defect = b"", ""
    with path.open() as stream:
        while chunk := stream.read(_CHUNK):
            head = head or chunk[:4]
            digest.update(chunk)
            if path.suffix == ".gz" and not defect:
                inflate, defect = _inflate(inflate, chunk)
            if tag and path.suffix != ".gz":
                break
    if path.suffix == ".gz" and head and not defect and not inflate.eof:
        defect = "truncated gzip: the file ends before its data does; have it delivered again"
    if path.suffix != ".gz" and head.startswith(_GZIP_MAGIC):
        defect = f"gzip data under the name {path.name}; it must end in .gz"
    return tag or digest.hexdigest(), defect


def _inflate(inflate: zlib._Decompress, chunk: bytes) -> tuple[zlib._Decompress, str]:
    """Go through one chunk of gzip data, which may hold the end of one member and the start of the next."""
    try:
        inflate.decompress(chunk)
        while inflate.eof and inflate.unused_data:
            rest = inflate.unused_data
            inflate = zlib.decompressobj(wbits=31)
            inflate.decompress(rest)
    except zlib.error as error:
        return inflate, f"not a sound gzip file ({error}); have it delivered again"
    return inflate, ""


def _missing_columns(columns: tuple[str, ...], spec: BronzeSpec) -> str:
    missing = [name for name in spec.columns if name not in columns]
    if not missing or not columns:
        return ""
    return f"has no column {', '.join(missing)}; its columns are {', '.join(columns)}: correct the file or the spec"


def _json_columns(path: LandedFile, source: LandingSource) -> tuple[str, ...]:
    """JSON lines name their columns in every line; refused is only a file in which no line can be an object."""
    with _opened(path) as stream:
        lines = io.TextIOWrapper(stream, encoding="utf-8", errors="replace")
        starts = [line.lstrip()[:1] for line in islice(lines, _LINES_LOOKED_AT) if line.strip()]
    if starts and "{" not in starts:
        msg = f"{path.name} holds no JSON lines; the spec's source.format is {source.format}"
        raise ValueError(msg)
    return ()


def _csv_columns(path: LandedFile, source: LandingSource) -> tuple[str, ...]:
    if _head(path).startswith(_PARQUET_MAGIC):
        msg = f"Parquet data under the name {path.name}; the spec's source.format is {source.format}"
        raise ValueError(msg)
    _require_encoding(path, source)
    with _opened(path) as stream:
        lines = io.TextIOWrapper(stream, encoding=source.encoding.replace("UTF-8", "UTF-8-sig"), newline="")
        try:
            return tuple(next(csv.reader(lines, **_csv_dialect(source)), ()))
        except csv.Error as error:
            msg = f"{path.name} does not begin with a CSV header ({error}); the spec's source.format is {source.format}"
            raise ValueError(msg) from error


def _csv_dialect(source: LandingSource) -> dict[str, Any]:
    """The source's way to write CSV, in the words of Python's reader."""
    doubled = source.escape == source.quote
    escape = None if doubled else source.escape
    return {"delimiter": source.delimiter, "quotechar": source.quote, "doublequote": doubled, "escapechar": escape}


def _require_encoding(path: LandedFile, source: LandingSource) -> None:
    """Whether the file is text of the source's encoding to its end: Spark would put a mark for what is not.

    Raises:
        ValueError: it is not.
    """
    decoder = codecs.getincrementaldecoder(source.encoding)()
    with _opened(path) as stream:
        try:
            while chunk := stream.read(_CHUNK):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            msg = f"not {source.encoding} text ({error.reason}); correct source.encoding of the spec, or the file"
            raise ValueError(msg) from error


def _parquet_columns(path: LandedFile, source: LandingSource) -> tuple[str, ...]:
    if not _head(path).startswith(_PARQUET_MAGIC):
        msg = f"{path.name} is not a Parquet file; the spec's source.format is {source.format}"
        raise ValueError(msg)
    try:
        with path.open() as content:
            return tuple(pq.read_schema(content).names)
    except (ValueError, OSError) as error:  # Arrow raises either, for one footer or the other
        msg = f"not a sound Parquet file ({str(error).strip()}); have it delivered again"
        raise ValueError(msg) from error


def _head(path: LandedFile) -> bytes:
    with _opened(path) as stream:
        return stream.read(4)


@contextmanager
def _opened(path: LandedFile) -> Iterator[BinaryIO]:
    with path.open() as stored, gzip.open(stored) if path.suffix == ".gz" else stored as content:
        yield cast(BinaryIO, content)


_COLUMNS_OF = {"json": _json_columns, "csv": _csv_columns, "parquet": _parquet_columns}
