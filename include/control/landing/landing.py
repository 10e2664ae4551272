"""Landing files: which ones lie there, and what tells one from another before it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from typing import BinaryIO, Protocol

from include.contracts.interval import Interval
from include.contracts.lake_path import S3
from include.contracts.spec.bronze_sources import LandingSource
from include.contracts.spec.table_spec import BronzeSpec
from include.control.landing.file_names import data_files
from include.control.landing.on_disk import LocalLanding
from include.control.log.batch import FileFact
from include.errors import NotDeliveredError

_AT_A_TIME = 5_000


@dataclass(frozen=True)
class LandedFile:
    """The content of one landing file.

    Attributes:
        landing: where it lies.
        path: its path, as the ledger has it.
    """

    landing: Landing
    path: str

    @property
    def name(self) -> str:
        """The last part of its path."""
        return PurePosixPath(self.path).name

    def open(self) -> BinaryIO:
        """Its bytes as they lie there.

        Raises:
            FileNotFoundError: there is none any more.
        """
        return self.landing.open(self.path)


class Landing(Protocol):
    """Where files are delivered.

    Attributes:
        path_root: what the path of each file begins with, empty where paths are relative to the landing root.
        spark_root: what Spark's address of it begins with instead.
        spark_options: what Spark's reader must be told to reach it; no secrets.
    """

    path_root: str
    spark_root: str

    @property
    def spark_options(self) -> Mapping[str, str]:
        """What Spark's reader must be told to reach it; no secrets."""

    def place(self, folder: str) -> str:
        """The folder as a person finds it."""

    def files(self, folder: str, wanted: Callable[[str], bool]) -> Iterable[FileFact] | None:
        """The files in the folder and below whose paths below it are wanted; None where there is no such folder."""

    def listed(self, path: str) -> FileFact | None:
        """A file as a listing shows it now; None where there is none any more."""

    def open(self, path: str) -> BinaryIO:
        """The content of a file.

        Raises:
            FileNotFoundError: there is none any more.
        """


def landing_of(feed: str, root: str) -> Landing:
    """Where a source delivers.

    Args:
        feed: its folder below the root, or a prefix of a bucket: `s3://bucket/prefix`.
        root: the landing root.
    """
    if any(place.startswith(S3) for place in (feed, root)):
        # boto3 takes as long to import as all the rest of a command, and most landing roots are folders.
        from include.control.landing.on_s3 import S3Landing

        return S3Landing("" if feed.startswith(S3) else root)
    return LocalLanding(root)


def interval_folder(source: LandingSource, interval: Interval) -> str:
    """The folder into which the source delivers the interval's files, relative to the landing root.

    >>> from datetime import UTC, datetime
    >>> day = Interval(start=datetime(2013, 1, 1, tzinfo=UTC), end=datetime(2013, 1, 2, tzinfo=UTC))
    >>> interval_folder(LandingSource(landing="s3://lake/flights", path="{interval_start:%Y}/./", format="json"), day)
    's3://lake/flights/2013'
    """
    path = source.path.format(interval_start=interval.start, interval_end=interval.end)
    scheme, is_url, folder = f"{source.landing}/{path}".rpartition("://")
    return f"{scheme}{is_url}{PurePosixPath(folder)}"


def files_by_the_thousand(spec: BronzeSpec, landing: Landing, interval: Interval) -> Iterator[list[FileFact]]:
    """All of `each_file`, in no order, so many at a time that looking them up is quick and takes little memory."""
    found = iter(each_file(spec, landing, interval))
    return iter(lambda: list(islice(found, _AT_A_TIME)), [])


def each_file(spec: BronzeSpec, landing: Landing, interval: Interval) -> Iterable[FileFact]:
    """The interval's files with what identifies each; nothing is read.

    Raises:
        NotDeliveredError: the interval's folder does not exist (yet).
    """
    folder = interval_folder(spec.landing_source, interval)
    found = landing.files(folder, data_files(spec.landing_source.files))
    if found is None:
        raise NotDeliveredError(
            f"{spec.table}: no landing folder {landing.place(folder)}",
            "The source has not delivered yet: a later run loads it. If the feed has moved, correct source.landing or "
            "source.path of the spec, or LAKEHOUSE_LANDING.",
        )
    return found


def same_listing(file: FileFact, known: Mapping[str, FileFact]) -> bool:
    """Whether the ledger knows a file of this path and size, and of this time or entity tag: it need not be read again.

    A bucket's listing brings the tag; a local folder's, which has none, brings the time.
    """
    seen = known.get(file.path)
    if seen is None or seen.size != file.size:
        return False
    return seen.checksum == file.checksum if file.checksum else seen.mtime_ns == file.mtime_ns


def is_as_listed(file: FileFact, landing: Landing) -> bool:
    """Whether a file is still the one that was listed; not so while it is being written."""
    now = landing.listed(file.path)
    return now is not None and same_listing(now, {file.path: file})
