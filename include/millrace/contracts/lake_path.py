"""The place of a lakehouse's tables: a folder of this machine, or a prefix of a bucket."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import TypeAlias

S3 = "s3://"
_BUCKETS = ("s3", "s3a", "s3n")


class S3Path(PurePosixPath):
    """A place in a bucket, as a pure path: it reads and writes nothing.

    >>> root = S3Path("s3://lake/tables")
    >>> str(root / "silver" / "flights")
    's3://lake/tables/silver/flights'
    >>> (root / "silver").bucket, (root / "silver").key
    ('lake', 'tables/silver')
    """

    __slots__ = ()

    def __str__(self) -> str:
        """Return the address, `s3://bucket/key`."""
        return f"{S3}{self.bucket}/{self.key}"

    @property
    def bucket(self) -> str:
        """The bucket."""
        return self.parts[1]

    @property
    def key(self) -> str:
        """The name of the object in its bucket, or the common prefix of several names."""
        return "/".join(self.parts[2:])


LakePath: TypeAlias = Path | S3Path
"""The place of one table, or of a whole lakehouse."""


def lake_path(place: object) -> LakePath:
    """Return `place` as a path: a folder, or a place in a bucket.

    Raises:
        ValueError: `place` is not a path, or is a URL other than `s3://bucket/...`.

    >>> lake_path("s3a://lake/tables/")
    S3Path('s3://lake/tables')
    """
    if isinstance(place, Path | S3Path):
        return place
    if not isinstance(place, str | os.PathLike):
        raise ValueError(f"{place!r} is not a path")
    url = bucket_url(os.fspath(place))
    return Path(place) if url is None else S3Path(url)


def bucket_url(place: str) -> str | None:
    """Return `s3://bucket/prefix` for a place in a bucket, whose scheme may be s3, s3a or s3n; None for a folder.

    Raises:
        ValueError: `place` is another URL, or names no bucket.
    """
    scheme, is_url, rest = place.partition("://")
    if not is_url:
        return None
    if scheme in _BUCKETS and rest.strip("/"):
        return f"{S3}{rest.rstrip('/')}"
    raise ValueError(f"{place} cannot hold files: write a folder, or s3://bucket/prefix")
