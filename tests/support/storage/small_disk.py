"""A disk of its own, a few megabytes large, that a test fills up and makes larger: a tmpfs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PAGE = 4096
"""A tmpfs gives out its space by pages."""


@dataclass(frozen=True)
class SmallDisk:
    """One mounted disk.

    Attributes:
        folder: where it is mounted.
    """

    folder: Path

    def leave(self, pages: int) -> None:
        """Fill it up to so many free pages."""
        self._ballast.unlink(missing_ok=True)
        with self._ballast.open("wb") as ballast:
            os.posix_fallocate(ballast.fileno(), 0, self.free - pages * PAGE)
        assert self.free == pages * PAGE

    def grow(self, size: str = "64m") -> None:
        """Make it larger; what filled it up stays."""
        _run("mount", "-o", f"remount,size={size}", str(self.folder))

    @property
    def free(self) -> int:
        """Bytes that are free."""
        return shutil.disk_usage(self.folder).free

    @property
    def _ballast(self) -> Path:
        return self.folder / ".ballast"


@contextmanager
def small_disk(folder: Path, size: str = "8m") -> Iterator[SmallDisk]:
    """A disk mounted at the empty folder, for a while.

    Raises:
        subprocess.CalledProcessError: this user may not mount one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    try:
        yield SmallDisk(folder)
    finally:
        _run("umount", "--lazy", str(folder))  # a Spark that failed to write a file there may still hold it open


def may_mount() -> bool:
    """Whether this user may mount a disk here."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with small_disk(Path(folder)):
                return True
        except (OSError, subprocess.CalledProcessError):
            return False


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
