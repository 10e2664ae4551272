"""Landing files in folders of this machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO

from include.control.batch import FileFact


class LocalLanding:
    """A `Landing` below a folder."""

    path_root = ""
    spark_options: Mapping[str, str] = {}

    def __init__(self, root: str) -> None:
        self._root = root
        self.spark_root = f"{root}/"

    def place(self, folder: str) -> str:
        """The folder as a person finds it."""
        return f"{self._root}/{folder}"

    def files(self, folder: str, wanted: Callable[[str], bool]) -> Iterator[FileFact] | None:
        """The files in the folder and below whose paths below it are wanted; None where there is no such folder."""
        found = self._below(folder, wanted)
        return (file for file in map(self.listed, found) if file) if os.path.isdir(self.place(folder)) else None

    def open(self, path: str) -> BinaryIO:
        """The content of a file."""
        return open(self.place(path), "rb")

    def listed(self, path: str) -> FileFact | None:
        """A file with its size and time; None where there is none any more, or it is no file."""
        try:
            found = os.stat(self.place(path))
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        return FileFact(path=path, size=found.st_size, mtime_ns=found.st_mtime_ns)

    def _below(self, folder: str, wanted: Callable[[str], bool]) -> Iterator[str]:
        """Paths as text: a path object for each of 100,000 files costs seconds."""
        top = self.place(folder)
        for parent, _, names in os.walk(top):
            within = f"{parent[len(top) + 1 :]}/".lstrip("/")
            yield from (f"{folder}/{within}{name}" for name in names if wanted(within + name))
