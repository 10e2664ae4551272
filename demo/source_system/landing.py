"""Putting landing files in place, whole or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path


def day_folder(landing: Path, feed: str, day: date) -> Path:
    """The landing folder of one feed for one UTC day, for example ``weather/date=2013-01-01``."""
    return landing / feed / f"date={day.isoformat()}"


def json_lines(lines: Iterable[str]) -> bytes:
    """Gzipped JSON lines, without a time stamp in the header: the same lines always give the same bytes."""
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), compresslevel=6, mtime=0)


def csv_table(header: Sequence[str], rows: Iterable[Sequence[str | None]]) -> bytes:
    """A CSV with a header line; a null is an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under a hidden name and rename it, so that a listing never sees a part of it.

    A file that already has this content is left alone: with its modification time it also keeps its identity for a
    reader that remembers which files it has loaded.
    """
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
