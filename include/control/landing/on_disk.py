"""Landing files in folders of this machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import BinaryIO

from include.control.log.batch import FileFact
from include.control.storage.stored_bytes import stored_bytes
from include.errors import BadInputError, NotReadyError, StorageError


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
        try:
            with _trouble(self.place(folder)):
                is_folder = stat.S_ISDIR(os.stat(self.place(folder)).st_mode)
        except FileNotFoundError:
            is_folder = False
        found = self._below(folder, wanted)
        return (file for file in map(self.listed, found) if file) if is_folder else None

    def open(self, path: str) -> BinaryIO:
        """The content of a file.

        Raises:
            FileNotFoundError: there is none any more.
            NotReadyError: the disk, or the server behind it, fails, at once or while the content is read.
            StorageError: it may not be read.
        """
        trouble = partial(_trouble, self.place(path))
        with trouble():
            return stored_bytes(open(self.place(path), "rb", buffering=0), trouble)

    def listed(self, path: str) -> FileFact | None:
        """A file with its size and time; None where there is none any more, or it is no file."""
        try:
            with _trouble(self.place(path)):
                found = os.stat(self.place(path))
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        return FileFact(path=path, size=found.st_size, mtime_ns=found.st_mtime_ns)

    def _below(self, folder: str, wanted: Callable[[str], bool]) -> Iterator[str]:
        """Paths as text: a path object for each of 100,000 files costs seconds."""
        top = self.place(folder)
        for parent, _, names in os.walk(top, onerror=_raise_trouble):
            within = f"{parent[len(top) + 1 :]}/".lstrip("/")
            yield from (_recordable(f"{folder}/{within}{name}") for name in names if wanted(within + name))


def _recordable(path: str) -> str:
    """The path, if it can be written down.

    Raises:
        BadInputError: it cannot: its bytes are no UTF-8 text.
    """
    if not path.isascii():
        try:
            path.encode()
        except UnicodeEncodeError as error:
            msg = f"the name of a landing file is no UTF-8 text: {os.fsencode(path)!r}\nRename it, or move it away."
            raise BadInputError(msg) from error
    return path


@contextmanager
def _trouble(place: str) -> Iterator[None]:
    """Raise what a person can do about an error of the file system.

    Raises:
        FileNotFoundError: there is no such file.
        NotReadyError: the disk, or the server behind it, fails.
        StorageError: this process may not read it.
    """
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(place) from error
    except PermissionError as error:
        msg = f"{place} may not be read ({error.strerror}).\nLet the user of this process read it, then run this again."
        raise StorageError(msg) from error
    except OSError as error:
        msg = f"{place} cannot be read now ({error.strerror}).\nSee the disk, or the server of a shared folder."
        raise NotReadyError(msg) from error


def _raise_trouble(error: OSError) -> None:
    """A folder that cannot be listed is an error; one that went away meanwhile holds no files."""
    with suppress(FileNotFoundError), _trouble(error.filename):
        raise error
