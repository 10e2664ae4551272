"""The inspection of landing files before Spark reads them: the checksum, the columns, and the defects."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import NamedTuple

from millrace.contracts.restricted import RESTRICTED
from millrace.contracts.spec.bronze_sources import LandingSource
from millrace.contracts.spec.record_fields import fields_among, fields_of, path_text, paths_of, quoted
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.landing.formats.avro_files import MAGIC, read_avro
from millrace.control.landing.formats.avro_values import needs_copy
from millrace.control.landing.formats.compression import PackingCheck, packing_of, unpacked
from millrace.control.landing.formats.csv_files import read_csv
from millrace.control.landing.formats.json_arrays import is_array, require_array
from millrace.control.landing.formats.parquet_files import digest, layout_of, parquet_file
from millrace.control.landing.formats.record_sizes import JsonSizes
from millrace.control.landing.landing import Landing, LandingFile
from millrace.control.landing.reader_process import read_apart
from millrace.control.log.batch import COPIED, JSON_ARRAY, FileFact
from millrace.errors import first_line

_CHUNK = 1 << 20

_JSON_LINES_READ = 20
_MAX_NAMES, _MAX_DEFECT = 20, 1_000
_PARQUET_MAGIC, _ENCRYPTED_MAGIC = b"PAR1", b"PARE"


class Content(NamedTuple):
    """The columns and the layout of a file, as in `FileFact`, and the columns that cannot be read, with the cause."""

    columns: tuple[str, ...] = ()
    layout: str = ""
    unread: Mapping[str, str] = {}


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
        checksum, defect = _checksum_and_defect(path, file, spec.landing_source)
        is_sound = file.size and not defect
        content, misfit = _content(path, file.size, spec, needed) if is_sound else (Content(), "")
    except FileNotFoundError:
        return replace(file, checksum="", defect="it went away while it was read")
    defect = _bounded(defect or misfit)
    return replace(file, checksum=checksum, defect=defect, columns=content.columns, layout=content.layout)


def _bounded(defect: str) -> str:
    """Return a defect without its middle if it is long: its names are those of the file."""
    return defect if len(defect) <= _MAX_DEFECT else f"{defect[: _MAX_DEFECT // 2]} ... {defect[-_MAX_DEFECT // 3 :]}"


def _content(path: LandingFile, size: int, spec: BronzeSpec, needed: Collection[str]) -> tuple[Content, str]:
    """Return (the content of the file, why it does not fit the spec)."""
    try:
        content = _read_content(path, size, spec.landing_source)
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
    more = f" and {len(content.columns) - _MAX_NAMES} more" if len(content.columns) > _MAX_NAMES else ""
    columns = ", ".join(content.columns[:_MAX_NAMES]) + more
    if spec.has_restricted_columns and spec.landing_source.format == "csv":
        columns = RESTRICTED  # the first line of a file without a header has values
    paths = [path_text(path) for name, path in paths_of(spec).items() if name in missing and len(path) > 1]
    likely = [f"; from: {quoted(path)!r} reads the field of this name" for path in paths if path in content.columns]
    if spec.landing_source.format == "csv" and len(content.columns) == 1:
        marks = [each for each in ",;\t|" if each in content.columns[0]]
        likely += [f"; if its delimiter is {marks[0]!r}, state source.delimiter"] if marks else []
    text = f"has no column {', '.join(defect)}; its columns are {columns}: correct the file or the spec"
    return content, text + "".join(likely)


def columns_of(path: LandingFile, source: LandingSource) -> tuple[str, ...]:
    """Return the names of a file's columns; none for JSON, whose records name their fields one by one.

    Raises:
        ValueError: it does not have the format of the source.
    """
    file = path.landing.file_at(path.path)
    return _read_content(path, file.size if file else 0, source).columns


def _read_content(path: LandingFile, size: int, source: LandingSource) -> Content:
    """Return the content of a file; one whose size does not decide what that costs is read in another process."""
    read = partial(_CONTENT_OF[source.format], path, source)
    content = read_apart(read, size, source.limits) if source.format in _APART else read()
    if len(content.columns) > source.limits.columns:
        raise source.limits.over("columns", f"it has {len(content.columns)} columns")
    return content


def _checksum_and_defect(path: LandingFile, file: FileFact, source: LandingSource) -> tuple[str, str]:
    """Return (the digest of the stored bytes, the defect of their compression, or of the lines of a JSON file).

    If there is an entity tag, it is the digest, and only files that must be are read to their end.
    """
    tag, limits, defect = file.checksum, source.limits, ""
    digest, packing, sizes = hashlib.sha256(), PackingCheck(path.name, file.size, limits), JsonSizes(limits)
    is_json = source.format == "json"
    is_read = not tag or packing_of(path.name) or (is_json and file.size > limits.record)
    with path.open() as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            try:
                for piece in packing.feed(chunk) if not defect else ():
                    if is_json:
                        sizes.feed(piece)
            except ValueError as error:
                defect = first_line(error)
            if not is_read or (tag and defect):
                break
    return tag or digest.hexdigest(), defect or packing.defect()


def _json_content(path: LandingFile, source: LandingSource) -> Content:
    """Return the layout; of JSON lines, refuse only a file in which no line can be an object."""
    with unpacked(path) as stream:
        has_array = is_array(io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace"))
    with unpacked(path) as stream:
        if has_array:
            require_array(io.TextIOWrapper(stream, encoding="utf-8-sig"), source.limits)
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
    return Content(*read_csv(path, source))


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
        fields = read_avro(stream, source.limits)
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
    with unpacked(path) as stream:
        return stream.read(4)


_APART = ("parquet", "avro")
_CONTENT_OF = {"json": _json_content, "csv": _csv_content, "parquet": _parquet_content, "avro": _avro_content}
