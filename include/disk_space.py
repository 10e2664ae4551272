"""A full disk: told from whatever error it comes as, and said with the folder that has no space left."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import gettempdir

from include.contracts.lake_path import LakePath
from include.errors import DiskFullError

_NUMBERS = (errno.ENOSPC, errno.EDQUOT)
_WORDS = ("No space left on device", "Disk quota exceeded")
"""As the C library says it; Java and Rust pass it on within messages of their own."""

_MB = 1_000_000
_PLENTY = 100 * _MB


def disk_full_error(error: BaseException, what: str, places: Sequence[LakePath]) -> DiskFullError | None:
    """What to raise or report in the place of `error`, where it comes from a full disk; else None.

    Args:
        error: what a write ended with.
        what: whose write it was, a table or a command.
        places: where it may have been written to. The one that the error names is told, else the one with the least
            space.
    """
    causes = _causes(error)
    if not any(_is_full(cause) for cause in causes):
        return None
    folders = [place for place in places if isinstance(place, Path)] or [Path(gettempdir())]
    said = "\n".join(map(str, causes))
    named = sorted((folder for folder in folders if str(folder) in said), key=lambda folder: len(str(folder)))
    return disk_full(what, named[-1] if named[1:] else min(folders, key=_free))


def disk_full(what: str, folder: Path) -> DiskFullError:
    """The error that tells a person where to make room."""
    free = _free(folder)
    size = shutil.disk_usage(_existing(folder)).total
    msg = (
        f"{what}: the disk is full: no space left for {folder} ({free // _MB:,} of {size // _MB:,} MB free)"
        f"{_perhaps_elsewhere(free)}\nMake room there, then run the same again: nothing was written half, and nothing "
        "will be loaded twice."
    )
    return DiskFullError(msg)


def _perhaps_elsewhere(free: int) -> str:
    scratch = ", or for the scratch files of Spark (spark.local.dir), if they are on another disk"
    return scratch if free > _PLENTY else ""


def _is_full(error: BaseException) -> bool:
    by_number = isinstance(error, OSError) and error.errno in _NUMBERS
    return by_number or any(words in str(error) for words in _WORDS)


def _causes(error: BaseException) -> list[BaseException]:
    """The error and all that it came from; `_cause` is where Spark's own errors keep the Java ones."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and not any(one is other for other in found):
            found.append(one)
            waiting += [one.__cause__, one.__context__, getattr(one, "_cause", None)]
    return found


def _free(folder: Path) -> int:
    return shutil.disk_usage(_existing(folder)).free


def _existing(folder: Path) -> Path:
    return next(one for one in (folder, *folder.absolute().parents) if one.exists())
