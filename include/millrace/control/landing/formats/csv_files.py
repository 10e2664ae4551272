"""The check of CSV files, before Spark reads them: their encoding, their header, and the ends and sizes of records."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from millrace.contracts.spec.bronze_sources import LandingSource
from millrace.control.landing.formats.compression import unpacked
from millrace.control.landing.formats.record_sizes import LineSizes, QuotedSizes, check_records
from millrace.control.landing.landing import LandingFile
from millrace.control.log.batch import MIXED_LINE_ENDS

_CHUNK = 1 << 20


def read_csv(path: LandingFile, source: LandingSource) -> tuple[tuple[str, ...], str]:
    """Return (the names of the columns of a CSV file, its layout) after reading all of it.

    Raises:
        ValueError: it is no CSV file of the source, or over a limit.
    """
    line_ends, last = _line_ends(path, source), [""]
    with unpacked(path) as stream:
        lines = _lines_of_header(_clean_lines(_text(stream, source, newline=""), last), source)
        try:
            header = next(csv.reader(lines, **csv_dialect(source)), [])
        except csv.Error as error:
            raise ValueError(
                f"{path.name} does not begin with a CSV header ({error}); the spec's source.format is {source.format}"
            ) from error
    # A column with an empty or repeated name is named by its number.
    first = {name: at for at, name in reversed(list(enumerate(header)))}
    names = (name if name and first[name] == at else f"column {at + 1}" for at, name in enumerate(header))
    return tuple(names), _record_end(path, source, line_ends, _end_of(last[0]))


def ends_within_quotes(path: LandingFile, source: LandingSource) -> bool:
    """Return whether a quoted value of a CSV file does not end: Spark then reads all after its quote as one value."""
    with unpacked(path) as stream:
        lines = _clean_lines(_text(stream, source, newline=""), [""])
        records = csv.reader(lines, **csv_dialect(source), strict=True)
        while True:
            try:
                next(records)
            except StopIteration:
                return False
            except csv.Error as error:  # also of text after a quoted value, which Spark reads
                if "unexpected end of data" in str(error):
                    return True


def _record_end(path: LandingFile, source: LandingSource, line_ends: set[str], header_end: str) -> str:
    """Return the layout of a CSV file: the end of its records.

    A single carriage return is text, unless it ends the header.

    Raises:
        ValueError: records end in several ways, and values contain line ends: Spark cannot distinguish them.
    """
    ends = line_ends if header_end == "\r" else line_ends - {"\r"}
    if len(ends) > 1:
        last, counts = [""], Counter[str]()
        with unpacked(path) as stream:
            lines = _text(stream, source, newline="" if header_end == "\r" else "\n")
            records = csv.reader(_clean_lines(lines, last), **csv_dialect(source))
            counts.update(_end_of(last[0]) for _ in records)
        ends = counts.keys() - {""}
        values_have_ends = records.line_num > counts.total() or line_ends - ends
        if len(ends) > 1 and (values_have_ends or source.encoding.startswith("UTF-16")):
            raise ValueError(
                "its records end in several ways, and values hold line ends too; have it delivered with one kind"
            )
    return MIXED_LINE_ENDS if len(ends) > 1 else "".join(ends - {"\n"})


def _lines_of_header(lines: Iterable[str], source: LandingSource) -> Iterator[str]:
    """Yield lines, of which the first record has the first ones.

    Raises:
        ValueError: it is over the limit.
    """
    limit = "header" if source.header else "record"
    size, most = 0, getattr(source.limits, limit)
    for line in lines:
        size += len(line)
        if size > most:
            raise source.limits.over(limit, f"it has a {limit} of more than {most} characters")
        yield line


def _text(stream: BinaryIO, source: LandingSource, newline: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(stream, encoding=source.encoding.replace("UTF-8", "UTF-8-sig"), newline=newline)


def _clean_lines(lines: Iterable[str], last: list[str]) -> Iterator[str]:
    """Yield lines without the carriage returns that Python's reader refuses; keep the current line in `last`."""
    for last[0] in lines:
        end = _end_of(last[0])
        yield last[0].removesuffix(end).replace("\r", " ") + end


def _end_of(line: str) -> str:
    return next((end for end in ("\r\n", "\n", "\r") if line.endswith(end)), "")


def csv_dialect(source: LandingSource) -> dict[str, Any]:
    """Return the CSV options of the source as arguments of Python's reader."""
    doubled = source.escape == source.quote
    escape = None if doubled else source.escape
    return {"delimiter": source.delimiter, "quotechar": source.quote, "doublequote": doubled, "escapechar": escape}


def _line_ends(path: LandingFile, source: LandingSource) -> set[str]:
    """Return the line ends of a file, within quotes or not, after reading all of it.

    Raises:
        ValueError: it is no text of the source's encoding: Spark would replace the wrong bytes silently. Or one of its
            records is over the limit.
    """
    lines, quoted_sizes = LineSizes(source.limits, ("\n", "\r")), QuotedSizes(source.limits, source.quote)
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(source.encoding)(), translate=False)
    with unpacked(path) as stream:
        try:
            while chunk := stream.read(_CHUNK):
                text = decoder.decode(chunk)
                lines.feed(text)
                if source.multi_line:
                    quoted_sizes.feed(text)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"not {source.encoding} text ({error.reason}); correct source.encoding of the spec, or the file"
            ) from error
    if quoted_sizes.is_over:
        with unpacked(path) as stream:
            check_records(_clean_lines(_text(stream, source, newline=""), [""]), csv_dialect(source), source.limits)
    line_ends = decoder.newlines or ()
    return {line_ends} if isinstance(line_ends, str) else set(line_ends)
