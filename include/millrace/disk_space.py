"""Recognise a full disk in any error, and name the folder that has no space left."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import gettempdir

from millrace.contracts.lake_path import LakePath
from millrace.errors import DiskFullError

_NUMBERS = (errno.ENOSPC, errno.EDQUOT)
_WORDS = ("No space left on device", "Disk quota exceeded")
"""The messages of the C library; Java and Rust include them in their own messages."""

_MB = 1_000_000
_PLENTY = 100 * _MB


def disk_full_error(error: BaseException, what: str, places: Sequence[LakePath]) -> DiskFullError | None:
    """Return the error to raise or report instead of `error` if a full disk caused it; else None.

    Args:
        error: the error of a write.
        what: the table or command that wrote.
        places: the possible targets of the write. The message names the one that the error names, else the one with the
            least space.
    """
    causes = _causes(error)
    text = "\n".join(map(str, causes))
    has_number = any(isinstance(cause, OSError) and cause.errno in _NUMBERS for cause in causes)
    if not has_number and not any(words in text for words in _WORDS):
        return None
    folders = [place for place in places if isinstance(place, Path)] or [Path(gettempdir())]
    named = sorted((folder for folder in folders if str(folder) in text), key=lambda folder: len(str(folder)))
    return disk_full(what, named[-1] if named[1:] else min(folders, key=_free_and_size))


def disk_full(what: str, folder: Path) -> DiskFullError:
    """Return the error that tells a person where to make room."""
    free, size = _free_and_size(folder)
    elsewhere = ", or for the scratch files of Spark (spark.local.dir), if they are on another disk"
    msg = (
        f"{what}: the disk is full: no space left for {folder} ({free // _MB:,} of {size // _MB:,} MB free)"
        f"{elsewhere if free > _PLENTY else ''}\nMake room there, then run the same again: nothing was written half, "
        "and nothing will be loaded twice."
    )
    return DiskFullError(msg)


def _causes(error: BaseException) -> list[BaseException]:
    """Return the error and all its causes; Spark's errors keep the Java errors in `_cause`."""
    causes: list[BaseException] = []
    queue: list[BaseException | None] = [error]
    while queue:
        cause = queue.pop()
        if cause is not None and not any(cause is other for other in causes):
            causes.append(cause)
            queue += [cause.__cause__, cause.__context__, getattr(cause, "_cause", None)]
    return causes


def _free_and_size(folder: Path) -> tuple[int, int]:
    """Return the free bytes and the size of the disk of a folder, which may not exist yet."""
    existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    usage = shutil.disk_usage(existing)
    return usage.free, usage.total
