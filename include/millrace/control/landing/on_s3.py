"""Landing files in a bucket of S3, or of a compatible store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, BinaryIO

import smart_open

from millrace.contracts.lake_path import S3
from millrace.control.landing.on_disk import TOP
from millrace.control.log.batch import FileFact
from millrace.control.storage.s3_access import s3_client, spark_options, translate_storage_errors
from millrace.control.storage.stored_bytes import stored_bytes
from millrace.errors import NotReadyError

_KEPT_OF_OBJECTS = ("ContentType", "ContentEncoding", "ContentDisposition", "CacheControl", "Metadata")
"""What a new content of an object keeps of the old one."""


class S3Landing:
    """A `Landing` in a bucket. Its listing has the entity tag of each file, which stands for the content.

    Without a root, the paths of the files are complete: `s3://bucket/key`.
    """

    def __init__(self, root: str, variables: Mapping[str, str] | None = None) -> None:
        self._root = root
        self._variables = variables
        self.path_root = "" if root else S3
        self.spark_root = f"s3a://{root.removeprefix(S3)}/" if root else "s3a://"

    @property
    def _client(self) -> Any:
        return s3_client(self._variables)

    @property
    def spark_options(self) -> Mapping[str, str]:
        """The options with which Spark's reader reaches the store."""
        return spark_options()

    def location(self, path: str) -> str:
        """Return the URL of an object or a prefix."""
        if not self._root:
            return path
        return self._root if path == TOP else f"{self._root}/{path}"

    def name_defect(self, path: str) -> str:
        """Return why Spark cannot read an object of this name; empty if it can.

        Hadoop takes names with these characters for patterns, and parses the names below a pattern as URLs.
        """
        special = sorted(set(path.removeprefix(S3)) & set("{}[]*?\\"))
        if ":" not in path.removeprefix(S3) or not special:
            return ""
        return f"Spark reads no object with both a colon and {special[0]} in its name: have it delivered under another"

    def files(self, folder: str, is_selected: Callable[[str], bool]) -> Iterator[FileFact] | None:
        """Return the objects below the prefix whose names below it are selected; None if there is no object at all."""
        objects = self._objects(folder)
        if (first := next(objects, None)) is None:
            return None
        prefix = _bucket_and_key(f"{self.location(folder)}/")[1]
        files = (entry for entry in chain([first], objects) if entry["Key"][-1] != "/")
        named = ((entry["Key"].removeprefix(prefix), entry) for entry in files)
        above = "" if folder == TOP else f"{folder}/"
        return (_fact(above + name, entry) for name, entry in named if is_selected(name))

    def _objects(self, folder: str) -> Iterator[dict[str, Any]]:
        """Yield the listing's entries below the prefix page by page: each entry takes a kilobyte of memory."""
        bucket, prefix = _bucket_and_key(f"{self.location(folder)}/")
        with translate_storage_errors(self.location(folder)):
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
                yield from page.get("Contents", ())

    def file_at(self, path: str) -> FileFact | None:
        """Return an object as a listing shows it now; None if it does not exist any more."""
        bucket, key = _bucket_and_key(self.location(path))
        try:
            with translate_storage_errors(self.location(path)):
                head = self._client.head_object(Bucket=bucket, Key=key)
        except FileNotFoundError:
            return None
        return _fact(path, {**head, "Size": head["ContentLength"]})

    def open(self, path: str) -> BinaryIO:
        """Open the content of an object."""
        url = self.location(path)
        with translate_storage_errors(url):
            content = smart_open.open(url, "rb", compression="disable", transport_params={"client": self._client})
            return stored_bytes(content, partial(_translate_read_errors, url))

    def replace(self, before: FileFact, content: BinaryIO, announce: Callable[[FileFact], None]) -> None:
        """Replace the content of an object by a conditional put.

        Args:
            before: the object, as it was listed.
            content: its new content.
            announce: takes the new facts of the object, before they hold; again if the store has made another tag.

        Raises:
            NotReadyError: the object has changed since.
            StorageError: this process may not replace it.
        """
        from botocore.exceptions import ClientError

        url, expected = self.location(before.path), before.checksum.removeprefix("etag:")
        bucket, key = _bucket_and_key(url)
        body = content.read()
        tag = hashlib.md5(body, usedforsecurity=False).hexdigest()
        after = replace(before, size=len(body), checksum=f"etag:{tag}")
        announce(after)
        with translate_storage_errors(url):
            head = self._client.head_object(Bucket=bucket, Key=key)
            kept = {name: head[name] for name in _KEPT_OF_OBJECTS if name in head}
            try:
                answer = self._client.put_object(Bucket=bucket, Key=key, Body=body, IfMatch=f'"{expected}"', **kept)
            except ClientError as error:
                if error.response["Error"]["Code"] in ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey"):
                    raise NotReadyError(f"{url} has changed while it was read", "Run this again.") from error
                raise
        if (actual := answer["ETag"].strip('"')) != tag:  # of an encrypted object
            announce(replace(after, checksum=f"etag:{actual}"))

    def delete(self, before: FileFact, announce: Callable[[], None]) -> None:
        """Delete an object; call `announce` before that; raise the errors of `replace`."""
        url = self.location(before.path)
        bucket, key = _bucket_and_key(url)
        now = self.file_at(before.path)
        if now is None or now.checksum != before.checksum:
            raise NotReadyError(f"{url} has changed while it was read", "Run this again.")
        announce()
        with translate_storage_errors(url):
            self._client.delete_object(Bucket=bucket, Key=key)


@contextmanager
def _translate_read_errors(url: str) -> Iterator[None]:
    """Do the same as `translate_storage_errors`, also for the `OSError` that smart_open raises after some retries."""
    with translate_storage_errors(url):
        try:
            yield
        except OSError as error:
            if error.__cause__:
                raise
            raise NotReadyError(f"{url}: its content breaks off ({error})", "Try again later.") from error


def _bucket_and_key(url: str) -> tuple[str, str]:
    bucket, _, key = url.removeprefix(S3).partition("/")
    return bucket, key


def _fact(path: str, entry: Mapping[str, Any]) -> FileFact:
    changed_ns = int(entry["LastModified"].timestamp()) * 1_000_000_000
    tag = entry["ETag"].strip('"')
    return FileFact(path=path, size=entry["Size"], mtime_ns=changed_ns, checksum=f"etag:{tag}")
