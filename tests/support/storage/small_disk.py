"""A separate disk of a few megabytes, which a test fills up and makes larger: a tmpfs."""

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
"""The unit in which a tmpfs gives out its space."""


@dataclass(frozen=True)
class SmallDisk:
    """One mounted disk.

    Attributes:
        folder: its mount point.
    """

    folder: Path

    def fill_up_to(self, free_pages: int) -> None:
        """Fill it up, but for `free_pages` pages."""
        self._ballast.unlink(missing_ok=True)
        with self._ballast.open("wb") as ballast:
            os.posix_fallocate(ballast.fileno(), 0, self.free - free_pages * PAGE)
        assert self.free == free_pages * PAGE

    def grow(self, size: str = "64m") -> None:
        """Make it larger; the content stays."""
        _run("mount", "-o", f"remount,size={size}", str(self.folder))

    @property
    def free(self) -> int:
        """The free bytes."""
        return shutil.disk_usage(self.folder).free

    @property
    def _ballast(self) -> Path:
        return self.folder / ".ballast"


@contextmanager
def small_disk(folder: Path, size: str = "8m") -> Iterator[SmallDisk]:
    """Mount a disk at an empty folder, and unmount it afterwards.

    Raises:
        subprocess.CalledProcessError: this user may not mount a disk.
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
