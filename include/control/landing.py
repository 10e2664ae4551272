"""Landing files: which ones lie there, and what tells one from another before it is read."""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from include.contracts.bronze_sources import LandingSource
from include.contracts.interval import Interval
from include.contracts.table_spec import BronzeSpec
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
    folder = interval_folder(spec.landing_source, landing, interval)
    if not folder.is_dir():
        msg = (
            f"{spec.table}: no landing folder {folder} for {interval}: the source has not delivered yet. "
            "The run tries again; if the feed has moved, correct source.landing or source.path of the spec."
        )
        raise NotReadyError(msg)
    found = (_listed(path, landing) for path in data_paths(folder, spec.landing_source.files))
    return tuple(sorted((file for file in found if file), key=lambda file: file.path))


def same_listing(file: FileFact, known: Mapping[str, FileFact]) -> bool:
    """Whether the ledger knows a file of this path, size and time, so that it need not be read again."""
    seen = known.get(file.path)
    return seen is not None and (seen.size, seen.mtime_ns) == (file.size, file.mtime_ns)


def is_as_listed(file: FileFact, landing: Path) -> bool:
    """Whether a file still has the size and the time that it was listed with; not so while it is being written."""
    try:
        found = (landing / file.path).stat()
    except FileNotFoundError:
        return False
    return (found.st_size, found.st_mtime_ns) == (file.size, file.mtime_ns)


def data_paths(folder: Path, pattern: str) -> Iterator[str]:
    """The paths of the data files below the folder that match, hidden and unfinished ones left out.

    As text: a path object for each of 100,000 files costs seconds.
    """
    if "/" in pattern:
        found = ((path, path.relative_to(folder).parts) for path in folder.glob(pattern))
        yield from (str(path) for path, parts in found if not any(map(_is_set_aside, parts)))
        return
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_set_aside(name)]
        yield from (f"{parent}/{name}" for name in fnmatch.filter(names, pattern) if not _is_set_aside(name))


def _is_set_aside(name: str) -> bool:
    """Whether a file or folder is hidden or unfinished: Spark's own writers keep theirs in `_temporary`."""
    return name.startswith((".", "_")) or name.endswith(UNFINISHED)


def _listed(path: str, landing: Path) -> FileFact | None:
    """A file with its size and time; None where there is none any more, or it is no file."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    relative = path.removeprefix(f"{landing}/")
    return FileFact(path=relative, size=found.st_size, mtime_ns=found.st_mtime_ns)
