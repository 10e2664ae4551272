"""Landing files in folders of this machine."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from millrace.control.log.batch import FileFact
from millrace.control.storage.objects import force_to_disk
from millrace.control.storage.stored_bytes import sha256_of, stored_bytes
from millrace.errors import NotReadyError, StorageError

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
        self._renamed: set[str] = set()

    def location(self, path: str) -> str:
        """Return the full path of a file or folder."""
        return f"{self._root}/{path}"

    def name_defect(self, path: str) -> str:
        """Return why a name cannot be recorded, or a link is not followed; empty if neither.

        A supplier could let a link lead to any file of this machine. Spark reads a file of any name.
        """
        if path in self._renamed:
            return "its name is no UTF-8 text: deliver it under another"
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
        files = map(self._listed, self._paths_below(folder, is_selected))
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

    def replace(self, before: FileFact, content: BinaryIO, announce: Callable[[FileFact], None]) -> None:
        """Replace the content of a file in one step.

        Args:
            before: the file, as it was listed.
            content: its new content.
            announce: takes the new facts of the file, with the checksum, before they hold.

        Raises:
            NotReadyError: the file has changed since.
            StorageError: this process may not replace it, or give the new file to its group; or it is a link, or has
                another name, which would keep the old content.
        """
        place = self._own_place(before)
        folder, name = os.path.split(place)
        written = f"{folder}/.{name}.erasing"
        with _translate_write_errors(place):
            own = os.stat(place)
            if own.st_nlink > 1:
                raise StorageError(f"{place} has another name, which would keep its content", "Delete that first.")
            with suppress(FileNotFoundError):
                os.unlink(written)  # of a run that died
            with open(
                os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IRUSR | stat.S_IWUSR), "wb"
            ) as target:
                # Only root may give a file away; the group decides who else may read it.
                os.fchown(target.fileno(), own.st_uid if os.geteuid() == 0 else -1, own.st_gid)
                os.fchmod(target.fileno(), stat.S_IMODE(own.st_mode))
                shutil.copyfileobj(content, target)
                target.flush()
                os.fsync(target.fileno())
            content.seek(0)
            status = os.stat(written)
            self._require_unchanged(before)
            announce(FileFact(before.path, status.st_size, status.st_mtime_ns, sha256_of(content)))
            os.replace(written, place)
            force_to_disk(Path(folder))

    def delete(self, before: FileFact, announce: Callable[[], None]) -> None:
        """Delete a file; call `announce` before that; raise the errors of `replace`."""
        place = self._own_place(before)
        with _translate_write_errors(place):
            self._require_unchanged(before)
            announce()
            os.unlink(place)
            force_to_disk(Path(place).parent)

    def _own_place(self, file: FileFact) -> str:
        """Return the full path of a file; of a link nobody knows here who else loads the file that it leads to."""
        location = self.location(file.path)
        if os.path.islink(location):
            raise StorageError(f"{location} is a link to another file, which may be another's", "See to that file.")
        return location

    def _require_unchanged(self, before: FileFact) -> None:
        now = self.file_at(before.path)
        if now is None or (now.size, now.mtime_ns) != (before.size, before.mtime_ns):
            raise NotReadyError(f"{self.location(before.path)} has changed while it was read", "Run this again.")

    def _listed(self, path: str) -> FileFact | None:
        """Return a file; a name that is no UTF-8 text, which nothing could record, is written with its bytes in hex."""
        file, name = self.file_at(path), os.fsencode(path).decode(errors="backslashreplace")
        if file is None or name == path:
            return file
        self._renamed.add(name)
        return replace(file, path=name)

    def _paths_below(self, folder: str, is_selected: Callable[[str], bool]) -> Iterator[str]:
        """Yield paths as text: a path object for each of 100,000 files takes seconds.

        `os.walk` of Python 3.11 calls itself for each folder within a folder, which ends at a thousand of them.
        """
        top, above = self.location(folder), "" if folder == TOP else f"{folder}/"
        folders = [""]
        while folders:
            within = folders.pop()
            for entry in _entries(f"{top}/{within}".rstrip("/")):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{within}{entry.name}/")
                elif is_selected(within + entry.name):
                    yield f"{above}{within}{entry.name}"


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """Return what is in a folder; nothing for one that was just deleted, or whose path is too long for any reader."""
    try:
        with _translate_errors(folder), os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


def _status(location: str) -> os.stat_result:
    """Return the status of a file; that of a link itself if it leads to itself, which is a defect and no wait."""
    try:
        return os.stat(location)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        return os.lstat(location)


@contextmanager
def _translate_write_errors(location: str) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        cause = f"{location} may not be changed ({error.strerror})."
        raise StorageError(cause, "Let the user of this process write its folder, then run this again.") from error
    except OSError as error:
        cause = f"{location} cannot be written now ({error.strerror})."
        raise NotReadyError(cause, "See the disk, or the server of a shared folder.") from error


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
        if error.errno == errno.ENAMETOOLONG:
            raise FileNotFoundError(location) from error
        cause = f"{location} cannot be read now ({error.strerror})."
        raise NotReadyError(cause, "See the disk, or the server of a shared folder.") from error
