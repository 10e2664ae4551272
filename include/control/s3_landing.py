"""Landing files in a bucket of S3, or of a store that speaks its language.

boto3 lists and reads, as its own settings say: `AWS_ENDPOINT_URL_S3`, `AWS_DEFAULT_REGION`, `AWS_PROFILE`, the
credentials in the environment, in a file, or of the machine. Spark is led to the same endpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import boto3
import smart_open
from botocore import exceptions
from botocore.config import Config

from include.contracts.landing_root import S3
from include.control.batch import FileFact
from include.errors import MillraceError, NotReadyError

_PATIENT = Config(retries={"mode": "standard", "max_attempts": 8}, connect_timeout=10, read_timeout=60)
_OF_AMAZON = (".amazonaws.com", ".amazonaws.com.cn")
_GONE = ("404", "NoSuchKey", "NotFound")
_CREDENTIALS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"


class StorageError(MillraceError):
    """Raised when a bucket cannot be read as this process is set up: credentials, permissions, a wrong name."""


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
        """The endpoint, as boto3 has found it. Stores other than Amazon's have no bucket names in their host names."""
        meta = self._client.meta
        is_amazon = (urlsplit(meta.endpoint_url).hostname or "").endswith(_OF_AMAZON)
        return {
            "fs.s3a.endpoint": meta.endpoint_url,
            "fs.s3a.endpoint.region": meta.region_name if meta.region_name != "aws-global" else "us-east-1",
            "fs.s3a.path.style.access": str(not is_amazon).lower(),
        }

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
        with _plainly(self.place(folder)):
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
                yield from page.get("Contents", ())

    def listed(self, path: str) -> FileFact | None:
        """An object as a listing shows it now; None where there is none any more."""
        bucket, key = _bucket_and_key(self.place(path))
        try:
            with _plainly(self.place(path)):
                found = self._client.head_object(Bucket=bucket, Key=key)
        except FileNotFoundError:
            return None
        return _fact(path, {**found, "Size": found["ContentLength"]})

    def open(self, path: str) -> BinaryIO:
        """The content of an object.

        Raises:
            FileNotFoundError: there is none any more.
            StorageError: it may not be read.
        """
        with _plainly(self.place(path)):
            reached = {"client": self._client}
            return smart_open.open(self.place(path), "rb", compression="disable", transport_params=reached)

    @cached_property
    def _client(self) -> Any:
        return boto3.Session().client("s3", config=_PATIENT)


def _bucket_and_key(url: str) -> tuple[str, str]:
    bucket, _, key = url.removeprefix(S3).partition("/")
    return bucket, key


def _fact(path: str, found: Mapping[str, Any]) -> FileFact:
    changed_ns = int(found["LastModified"].timestamp()) * 1_000_000_000
    return FileFact(path=path, size=found["Size"], mtime_ns=changed_ns, checksum=_tag(found))


def _tag(found: Mapping[str, Any]) -> str:
    tag: str = found["ETag"]
    return "etag:" + tag.strip('"')


@contextmanager
def _plainly(place: str) -> Iterator[None]:
    """Say what a person can do about an error of the store.

    Raises:
        FileNotFoundError: there is no such object.
        NotReadyError: the store does not answer.
        StorageError: it refuses.
    """
    try:
        yield
    except (exceptions.BotoCoreError, exceptions.ClientError, OSError, ValueError) as error:
        # smart_open wraps what boto3 raised.
        raise _plain_error(place, error.__cause__ or error) from error


def _plain_error(place: str, error: BaseException) -> Exception:
    if isinstance(error, exceptions.ConnectionError | exceptions.HTTPClientError):
        return NotReadyError(f"{place}: no answer ({error}). Try again later, or see AWS_ENDPOINT_URL_S3.")
    if isinstance(error, exceptions.NoCredentialsError):
        return StorageError(f"{place}: no credentials. Give this process {_CREDENTIALS}.")
    if isinstance(error, exceptions.ClientError) and error.response.get("Error", {}).get("Code") in _GONE:
        return FileNotFoundError(place)
    return StorageError(
        f"{place} cannot be read ({error}). See the bucket (LAKEHOUSE_LANDING, or source.landing of the spec) and its "
        f"permissions, AWS_ENDPOINT_URL_S3, and {_CREDENTIALS}."
    )
