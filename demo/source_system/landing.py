"""Write landing files atomically."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path


def day_folder(landing: Path, feed: str, day: date) -> Path:
    """Return the landing folder of a feed for a UTC day, for example ``weather/date=2013-01-01``."""
    return landing / feed / f"date={day.isoformat()}"


def json_lines(lines: Iterable[str]) -> bytes:
    """Return gzipped JSON lines, without a timestamp in the header: the same lines always give the same bytes."""
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), compresslevel=6, mtime=0)


def csv_table(header: Sequence[str], rows: Iterable[Sequence[str | None]]) -> bytes:
    """Return a CSV with a header line; null is an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under a hidden name and rename it, so that a listing never shows an incomplete file.

    A file that already has this content does not change: it keeps its modification time, by which a reader knows that
    it has loaded the file.
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
