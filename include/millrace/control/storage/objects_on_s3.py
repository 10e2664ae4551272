"""Objects with conditional puts in a bucket, and the check that its store has them, since every commit needs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, TypeAlias
from uuid import uuid4

from millrace.contracts.lake_path import LakePath, S3Path
from millrace.control.storage.content_cache import cache_content
from millrace.control.storage.objects import LocalObjectStore, StoredObject
from millrace.control.storage.read_cache import clear_read_cache, note_put
from millrace.control.storage.s3_access import s3_client, translate_storage_errors
from millrace.control.storage.stored_files import objects_in
from millrace.errors import StorageError

_CONFLICT_CODES = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "404", "409", "412")
"""The error codes of a condition that is not met: another writer came first."""


class S3ObjectStore:
    """Objects under a prefix of a bucket, whose store evaluates conditional puts atomically."""

    def __init__(self, folder: S3Path) -> None:
        self._folder = folder

    def get(self, key: str) -> StoredObject | None:
        """Return the object; None if there is none."""
        try:
            with translate_storage_errors(str(self._folder / key)):
                answer = s3_client().get_object(Bucket=self._folder.bucket, Key=(self._folder / key).key)
                return StoredObject(answer["Body"].read(), answer["ETag"], _age_s(answer))
        except FileNotFoundError:
            return None

    def put_if_absent(self, key: str, body: bytes) -> str:
        """Create the object, and return its etag; empty if the object exists already."""
        return self._put(key, body, IfNoneMatch="*")

    def put_if_match(self, key: str, body: bytes, etag: str) -> str:
        """Replace the object with this etag, and return the new etag; empty if no object has this etag any more."""
        return self._put(key, body, IfMatch=etag)

    def delete_if_match(self, key: str, etag: str) -> bool:
        """Delete the object with this etag; false if no object has this etag any more.

        A store without conditional deletes may delete an object that another writer has just put.
        """
        return self._request(key, s3_client().delete_object, IfMatch=etag) is not None

    def keys(self, prefix: str) -> list[str]:
        """Return the keys that start with `prefix`, sorted."""
        return sorted(name for name, _ in objects_in(self._folder, prefix))

    def marks(self) -> dict[str, str]:
        """Return key -> the etag of the object, from the listing."""
        return {name: item["ETag"] for name, item in objects_in(self._folder)}

    def _put(self, key: str, body: bytes, **condition: str) -> str:
        answer = self._request(key, s3_client().put_object, Body=body, **condition)
        if answer is not None:
            etag = str(answer["ETag"])
        else:
            # After a lost answer, a retry finds the object of the first attempt. Bodies have a nonce, so that an equal
            # body is always this writer's.
            current = self.get(key)
            etag = current.etag if current is not None and current.body == body else ""
        if etag:
            note_put(self._folder / key, etag)
            cache_content(self._folder / key, body, etag)
        else:
            clear_read_cache()
        return etag

    def _request(self, key: str, send: Callable[..., Any], **arguments: Any) -> Any:
        """Return the answer to a request; None if its condition is not met."""
        from botocore.exceptions import ClientError

        with translate_storage_errors(str(self._folder / key)):
            try:
                return send(Bucket=self._folder.bucket, Key=(self._folder / key).key, **arguments)
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") in _CONFLICT_CODES:
                    return None
                raise


ObjectStore: TypeAlias = LocalObjectStore | S3ObjectStore


def object_store(folder: LakePath, mode: int = 0o666) -> ObjectStore:
    """Return the store of the objects in a folder, with the `mode` of its files, or in a prefix of a bucket."""
    return S3ObjectStore(folder) if isinstance(folder, S3Path) else LocalObjectStore(folder, mode)


@cache
def require_conditional_puts(folder: S3Path) -> None:
    """Require that a store refuses the second of two conditional puts; each process checks it once.

    Raises:
        StorageError: the store accepts the second put, so that two writers could both commit the same version.
    """
    store, key = S3ObjectStore(folder), f"probe-{uuid4().hex}"
    store.put_if_absent(key, b"first")
    is_replaced = bool(store.put_if_absent(key, b"second"))
    if (probe := store.get(key)) is not None:
        store.delete_if_match(key, probe.etag)
    if is_replaced:
        raise StorageError(
            f"The store of {folder} has no conditional puts: it replaces an object in spite of If-None-Match",
            "Two writers could both commit the same version of a table, and rows would be lost without an error; "
            "nothing was written. Keep the tables in a store with conditional puts, such as S3 itself, or on a disk.",
        )


def _age_s(answer: Mapping[str, Any]) -> float:
    """Return a lower limit of the seconds since the put, by the store's clock, which has whole seconds."""
    now = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
    return float((now - answer["LastModified"]).total_seconds()) - 1
