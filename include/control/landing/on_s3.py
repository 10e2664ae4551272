"""Landing files in a bucket of S3, or of a store that speaks its language."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any, BinaryIO

import smart_open

from include.contracts.lake_path import S3
from include.control.log.batch import FileFact
from include.control.storage.s3_access import s3_client, spark_options, translate_storage_errors
from include.control.storage.stored_bytes import stored_bytes
from include.errors import NotReadyError


class S3Landing:
    """A `Landing` in a bucket. Its listing brings each file's entity tag, which stands for the content.

    Without a root, the files' own paths are whole: `s3://bucket/key`.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self.path_root = "" if root else S3
        self.spark_root = f"s3a://{root.removeprefix(S3)}/" if root else "s3a://"

    @property
    def spark_options(self) -> Mapping[str, str]:
        """What leads Spark to the store."""
        return spark_options()

    def place(self, folder: str) -> str:
        """The folder as a person finds it."""
        return f"{self._root}/{folder}" if self._root else folder

    def files(self, folder: str, wanted: Callable[[str], bool]) -> Iterator[FileFact] | None:
        """The objects below the prefix whose names below it are wanted; None where there is no object at all."""
        objects = self._objects(folder)
        if (first := next(objects, None)) is None:
            return None
        prefix = _bucket_and_key(f"{self.place(folder)}/")[1]
        named = ((one["Key"].removeprefix(prefix), one) for one in chain([first], objects) if one["Key"][-1] != "/")
        return (_fact(f"{folder}/{name}", one) for name, one in named if wanted(name))

    def _objects(self, folder: str) -> Iterator[dict[str, Any]]:
        """All that lies below the prefix, a page at a time: what the store says of an object takes a kilobyte."""
        bucket, prefix = _bucket_and_key(f"{self.place(folder)}/")
        with translate_storage_errors(self.place(folder)):
            for page in s3_client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
                yield from page.get("Contents", ())

    def listed(self, path: str) -> FileFact | None:
        """An object as a listing shows it now; None where there is none any more."""
        bucket, key = _bucket_and_key(self.place(path))
        try:
            with translate_storage_errors(self.place(path)):
                found = s3_client().head_object(Bucket=bucket, Key=key)
        except FileNotFoundError:
            return None
        return _fact(path, {**found, "Size": found["ContentLength"]})

    def open(self, path: str) -> BinaryIO:
        """The content of an object.

        Raises:
            FileNotFoundError: there is none any more.
            NotReadyError: the store does not answer, at once or while the content is read.
            StorageError: it may not be read.
        """
        with translate_storage_errors(self.place(path)):
            reached = {"client": s3_client()}
            found = smart_open.open(self.place(path), "rb", compression="disable", transport_params=reached)
            return stored_bytes(found, partial(_said_of_bytes, self.place(path)))


@contextmanager
def _said_of_bytes(place: str) -> Iterator[None]:
    """As `translate_storage_errors`. smart_open raises `OSError` after it has tried to read the body a few times."""
    with translate_storage_errors(place):
        try:
            yield
        except OSError as error:
            if error.__cause__:
                raise
            raise NotReadyError(f"{place}: its content breaks off ({error})\nTry again later.") from error


def _bucket_and_key(url: str) -> tuple[str, str]:
    bucket, _, key = url.removeprefix(S3).partition("/")
    return bucket, key


def _fact(path: str, found: Mapping[str, Any]) -> FileFact:
    changed_ns = int(found["LastModified"].timestamp()) * 1_000_000_000
    return FileFact(path=path, size=found["Size"], mtime_ns=changed_ns, checksum=_tag(found))


def _tag(found: Mapping[str, Any]) -> str:
    tag: str = found["ETag"]
    return "etag:" + tag.strip('"')
