"""The data of the benchmarks: one day of flights; or the year without its last events, and those events."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

from demo.source_system import FIRST_DAY, LAST_DAY, lay_out

DAY = "2013-01-01"
"""The day of the series that need only one day."""

YEAR = "2012-12-31"
"""The delivery with all events of the year except the last ones."""

RECENT = "2013-12-31"
"""The delivery with the last events."""

RECENT_ROWS = 10_000
_LINES_A_FILE = 50_000
_FEED = "flight_events"


def one_day(folder: Path) -> Path:
    """Lay out `DAY` as the source system delivers it."""
    lay_out(folder, date.fromisoformat(DAY), date.fromisoformat(DAY) + timedelta(days=1))
    return folder


def whole_year(folder: Path, source: Path) -> Path:
    """Lay out two deliveries, `YEAR` and `RECENT`; a complete folder does not change.

    Args:
        folder: the landing folder.
        source: the folder of the year's daily deliveries, from which the two are made, in the order of delivery.
    """
    complete = folder / "complete"
    if not complete.exists():
        lay_out(source, FIRST_DAY, LAST_DAY + timedelta(days=1))
        lines = delivered_lines(source)
        write_delivery(folder, YEAR, lines[:-RECENT_ROWS])
        write_delivery(folder, RECENT, lines[-RECENT_ROWS:])
        complete.touch()
    return folder


def delivered_lines(source: Path) -> list[bytes]:
    """Return all events of a landing folder, in the order of delivery: by day, then by file."""
    files = sorted((source / _FEED).glob("date=*/*.json.gz"))
    return [line for file in files for line in gzip.decompress(file.read_bytes()).splitlines(keepends=True)]


def write_delivery(folder: Path, day: str, lines: list[bytes]) -> None:
    """Write lines as one day's delivery, in files of bounded size."""
    into = folder / _FEED / f"date={day}"
    into.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(_parts(lines)):
        (into / f"{_FEED}_{number:02}.json.gz").write_bytes(gzip.compress(b"".join(part), compresslevel=6, mtime=0))


def _parts(lines: list[bytes]) -> Iterator[list[bytes]]:
    for start in range(0, len(lines), _LINES_A_FILE):
        yield lines[start : start + _LINES_A_FILE]
