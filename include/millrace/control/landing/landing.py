"""Landing files: which ones exist, and what distinguishes them before they are read."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO, Protocol

from millrace.contracts.interval import Interval
from millrace.contracts.lake_path import S3
from millrace.contracts.spec.bronze_sources import LandingSource
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.landing.on_disk import LocalLanding
from millrace.control.log.batch import FileFact
from millrace.errors import NotDeliveredError

_UNFINISHED = (".tmp", ".partial", ".crc", "._COPYING_", ".inprogress")
"""Endings of files and folders that a source system is still writing, or that hold no data."""

_NO_DATA = re.compile(rf"(?:^|/)[._]|(?:{'|'.join(map(re.escape, _UNFINISHED))})(?:/|$)")
"""A path with a hidden or unfinished part: Spark's own writers write to `_temporary`, for example."""


@dataclass(frozen=True)
class LandingFile:
    """One landing file that can be read, by its landing and its path in the ledger."""

    landing: Landing
    path: str

    @property
    def name(self) -> str:
        """The last part of its path."""
        return PurePosixPath(self.path).name

    def open(self) -> BinaryIO:
        """Open its bytes as they are stored.

        Raises:
            FileNotFoundError: it does not exist any more.
        """
        return self.landing.open(self.path)


class Landing(Protocol):
    """The place into which files are delivered.

    Attributes:
        path_root: the start of the path of each file; empty if paths are relative to the landing root.
        spark_root: what replaces it in the addresses that Spark reads.
    """

    path_root: str
    spark_root: str

    @property
    def spark_options(self) -> Mapping[str, str]:
        """The options with which Spark's reader reaches it; no secrets."""

    def location(self, path: str) -> str:
        """Return the full path or URL of a file or folder."""

    def name_defect(self, path: str) -> str:
        """Return why Spark cannot read a file of this name; empty if it can."""

    def files(self, folder: str, is_selected: Callable[[str], bool]) -> Iterable[FileFact] | None:
        """Return the files below the folder whose paths below it are selected; None if there is no such folder."""

    def file_at(self, path: str) -> FileFact | None:
        """Return a file as a listing shows it now; None if it does not exist any more."""

    def open(self, path: str) -> BinaryIO:
        """Open the content of a file.

        Raises:
            FileNotFoundError: it does not exist any more.
            NotReadyError: the disk or the store fails, now or while the content is read.
            StorageError: this process may not read it.
        """

    def replace(self, before: FileFact, content: BinaryIO, announce: Callable[[FileFact], None]) -> None:
        """Replace the content of a file in one step, unless it has changed since it was listed.

        Args:
            before: the file, as it was listed; of an object with its tag.
            content: the new content.
            announce: takes the new facts of the file before they hold, and again if they became other ones.

        Raises:
            NotReadyError: it has changed.
            StorageError: this process may not replace it, or something would keep the old content.
        """

    def delete(self, before: FileFact, announce: Callable[[], None]) -> None:
        """Delete a file, unless it has changed since it was listed; call `announce` before; raise as `replace`."""


def landing_of(feed: str, root: str, variables: Mapping[str, str] | None = None) -> Landing:
    """Return the landing of a source.

    Args:
        feed: the source's folder below the root, or a prefix of a bucket: `s3://bucket/prefix`.
        root: the landing root.
        variables: what boto3 reads instead of the environment, in a process that serves several identities.
    """
    if any(place.startswith(S3) for place in (feed, root)):
        # The import of boto3 takes as long as all the rest of a command, and most landing roots are folders.
        from millrace.control.landing.on_s3 import S3Landing

        return S3Landing("" if feed.startswith(S3) else root, variables)
    return LocalLanding(root)


def interval_folder(source: LandingSource, interval: Interval) -> str:
    """Return the folder for the interval's files, relative to the landing root.

    >>> from datetime import UTC, datetime
    >>> day = Interval(start=datetime(2013, 1, 1, tzinfo=UTC), end=datetime(2013, 1, 2, tzinfo=UTC))
    >>> interval_folder(LandingSource(landing="s3://lake/flights", path="{interval_start:%Y}/./", format="json"), day)
    's3://lake/flights/2013'
    """
    path = source.path.format(interval_start=interval.start, interval_end=interval.end)
    return plain_folder(f"{source.landing}/{path}")


def plain_folder(folder: str) -> str:
    """Return a folder as the paths of its files in the ledger begin.

    >>> plain_folder("s3://lake/./flights/"), plain_folder("./.")
    ('s3://lake/flights', '.')
    """
    scheme, separator, path = folder.rpartition("://")
    return f"{scheme}{separator}{PurePosixPath(path)}"


def data_file_filter(pattern: str) -> Callable[[str], bool]:
    """Return a function that tests whether the path of a file, relative to its folder, matches and is finished data.

    A pattern without a slash applies to the name, in the folder itself and in all folders below.

    >>> is_selected = data_file_filter("eu/**/*.csv")
    >>> [is_selected(path) for path in ("eu/a.csv", "eu/x/y/a.csv", "us/a.csv", "eu/_temporary/a.csv", "eu/a.csv.tmp")]
    [True, True, False, False, False]
    """
    regex = ""
    parts = (pattern if "/" in pattern else f"**/{pattern}").split("/")
    # Neighbouring `**` mean the same as one, and `re` would try all ways to divide folders among them.
    for before, part in zip(["", *parts], parts, strict=False):
        if part == before == "**":
            continue
        name = fnmatch.translate(part).removeprefix("(?s:").removesuffix(r")\Z").replace(".*", "[^/]*")
        regex += r"(?:[^/]+/)*" if part == "**" else f"{name}/"  # `**` is any number of folders
    matches = re.compile(regex.removesuffix("/")).fullmatch
    return lambda path: matches(path) is not None and not _NO_DATA.search(path)


def interval_files(spec: BronzeSpec, landing: Landing, interval: Interval) -> Iterable[FileFact]:
    """Return the interval's files by a listing, in no order; read none of them.

    Raises:
        NotDeliveredError: the interval's folder does not exist (yet).
    """
    folder = interval_folder(spec.landing_source, interval)
    files = landing.files(folder, data_file_filter(spec.landing_source.files))
    if files is None:
        raise NotDeliveredError(
            f"{spec.table}: no landing folder {landing.location(folder)}",
            "The source has not delivered yet: a later run loads it. If the feed has moved, correct source.landing or "
            "source.path of the spec, or LAKEHOUSE_LANDING.",
        )
    return files


def is_unchanged(file: FileFact, known: Mapping[str, FileFact]) -> bool:
    """Return whether `known` has a file with the same path, size, and time or entity tag: it need not be read again.

    The listing of a bucket has the tag. A local folder has no tags, and its listing has the time.
    """
    before = known.get(file.path)
    if before is None or before.size != file.size:
        return False
    return before.checksum == file.checksum if file.checksum else before.mtime_ns == file.mtime_ns


def is_as_listed(file: FileFact, landing: Landing) -> bool:
    """Return whether a file is still the same as in its listing; not so while it is being written."""
    now = landing.file_at(file.path)
    return now is not None and is_unchanged(now, {file.path: file})
