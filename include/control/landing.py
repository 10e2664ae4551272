"""Landing files: which ones lie there, and what tells one from another before it is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from include.contracts.interval import Interval
from include.contracts.table_spec import BronzeSpec, LandingSource
from include.control.batch import FileFact
from include.errors import NotReadyError

UNFINISHED = (".tmp", ".partial", ".crc", "._COPYING_", ".inprogress")
"""Endings of files and folders that a source system is still writing, or that are no data."""


def interval_folder(source: LandingSource, landing: Path, interval: Interval) -> Path:
    """The folder into which the source delivers the interval's files."""
    return landing / source.landing / source.path.format(interval_start=interval.start, interval_end=interval.end)


def list_files(spec: BronzeSpec, landing: Path, interval: Interval) -> tuple[FileFact, ...]:
    """The interval's files by name, with size and time; nothing is read.

    Raises:
        NotReadyError: the interval's folder does not exist (yet).
    """
    folder = interval_folder(spec.source, landing, interval)
    if not folder.is_dir():
        msg = (
            f"{spec.table}: no landing folder {folder} for {interval}: the source has not delivered yet. "
            "The run tries again; if the feed has moved, correct source.landing or source.path of the spec."
        )
        raise NotReadyError(msg)
    pattern = spec.source.files if "/" in spec.source.files else f"**/{spec.source.files}"
    data = (path for path in folder.glob(pattern) if not _is_set_aside(path.relative_to(folder)) and path.is_file())
    return tuple(_listed(path, landing) for path in sorted(data))


def same_listing(file: FileFact, known: Mapping[str, FileFact]) -> bool:
    """Whether the ledger knows a file of this path, size and time, so that it need not be read again."""
    seen = known.get(file.path)
    return seen is not None and (seen.size, seen.mtime_ns) == (file.size, file.mtime_ns)


def is_as_listed(file: FileFact, landing: Path) -> bool:
    """Whether a file still has the size and the time that it was listed with; not so while it is being written."""
    try:
        stat = (landing / file.path).stat()
    except FileNotFoundError:
        return False
    return (stat.st_size, stat.st_mtime_ns) == (file.size, file.mtime_ns)


def _is_set_aside(path: Path) -> bool:
    """Whether a file is hidden or unfinished, or lies in such a folder: Spark's writers keep theirs in `_temporary`."""
    return any(name.startswith((".", "_")) or name.endswith(UNFINISHED) for name in path.parts)


def _listed(path: Path, landing: Path) -> FileFact:
    stat = path.stat()
    return FileFact(path=path.relative_to(landing).as_posix(), size=stat.st_size, mtime_ns=stat.st_mtime_ns)
