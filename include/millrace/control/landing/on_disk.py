"""Landing files in folders of this machine."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import BinaryIO

from millrace.control.log.batch import FileFact
from millrace.control.storage.stored_bytes import stored_bytes
from millrace.errors import BadInputError, NotReadyError, StorageError

TOP = "."
"""The landing root as a folder of the landing."""


class LocalLanding:
    """A `Landing` below a folder."""

    path_root = ""
    # Without the cache, which has the file system of the tables.
    spark_options: Mapping[str, str] = {
        "fs.file.impl": "io.millrace.formats.LandingFileSystem",
        "fs.file.impl.disable.cache": "true",
    }

    def __init__(self, root: str) -> None:
        self._root = root
        self.spark_root = f"{root}/"

    def location(self, path: str) -> str:
        """Return the full path of a file or folder."""
        return f"{self._root}/{path}"

    def name_defect(self, path: str) -> str:
        """Return why a link is not followed, which a supplier could let lead to any file of this machine; else nothing.

        Spark reads a file of any name.
        """
        try:
            place = os.path.realpath(self.location(path), strict=True)
        except FileNotFoundError:
            return ""  # it went away
        except OSError as error:
            return f"it is a link that cannot be followed ({error.strerror}): deliver the file itself"
        root = os.path.realpath(self._root)
        if os.path.commonpath((place, root)) != root:
            return "it is a link to a place outside of the landing root: deliver the file itself"
        return ""

    def files(self, folder: str, is_selected: Callable[[str], bool]) -> Iterator[FileFact] | None:
        """Return the files below the folder whose paths below it are selected; None if there is no such folder."""
        try:
            with _translate_errors(self.location(folder)):
                is_folder = stat.S_ISDIR(os.stat(self.location(folder)).st_mode)
        except FileNotFoundError:
            is_folder = False
        files = map(self.file_at, self._paths_below(folder, is_selected))
        return (file for file in files if file) if is_folder else None

    def open(self, path: str) -> BinaryIO:
        """Open the content of a file."""
        translate_errors = partial(_translate_errors, self.location(path))
        with translate_errors():
            return stored_bytes(open(self.location(path), "rb", buffering=0), translate_errors)

    def file_at(self, path: str) -> FileFact | None:
        """Return a file with its size and time; None if it does not exist any more, or is no file."""
        try:
            with _translate_errors(self.location(path)):
                status = _status(self.location(path))
        except FileNotFoundError:
            return None
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            return None
        return FileFact(path=path, size=status.st_size, mtime_ns=status.st_mtime_ns)

    def _paths_below(self, folder: str, is_selected: Callable[[str], bool]) -> Iterator[str]:
        """Yield paths as text: a path object for each of 100,000 files takes seconds.

        Raises:
            BadInputError: a path is no UTF-8 text, so that it cannot be recorded.
        """
        top, above = self.location(folder), "" if folder == TOP else f"{folder}/"
        for parent, _, names in os.walk(top, onerror=_raise_unless_missing):
            within = f"{parent[len(top) + 1 :]}/".lstrip("/")
            for path in (f"{above}{within}{name}" for name in names if is_selected(within + name)):
                try:
                    path.encode()
                except UnicodeEncodeError as error:
                    cause = f"the name of a landing file is no UTF-8 text: {os.fsencode(path)!r}"
                    raise BadInputError(cause, "Rename it, or move it away.") from error
                yield path


def _status(location: str) -> os.stat_result:
    """Return the status of a file; that of a link itself if it leads to itself, which is a defect and no wait."""
    try:
        return os.stat(location)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        return os.lstat(location)


@contextmanager
def _translate_errors(location: str) -> Iterator[None]:
    """Translate errors of the file system into errors with a way out; a missing file stays a `FileNotFoundError`."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(location) from error
    except PermissionError as error:
        cause = f"{location} may not be read ({error.strerror})."
        raise StorageError(cause, "Let the user of this process read it, then run this again.") from error
    except OSError as error:
        cause = f"{location} cannot be read now ({error.strerror})."
        raise NotReadyError(cause, "See the disk, or the server of a shared folder.") from error


def _raise_unless_missing(error: OSError) -> None:
    """Raise the error of a folder that cannot be listed; a folder that was just deleted holds no files."""
    with suppress(FileNotFoundError), _translate_errors(error.filename):
        raise error
