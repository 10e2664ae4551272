"""Objects with conditional puts in a bucket: leases for writers on several machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from include.contracts.lake_path import LakePath, S3Path
from include.control.storage.objects import LocalObjectStore, ObjectStore, StoredObject
from include.control.storage.read_cache import clear_read_cache, note_put
from include.control.storage.s3_access import s3_client, translate_storage_errors
from include.control.storage.stored_files import cache_content, objects_in

_CONFLICT_CODES = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "404", "409", "412")
"""The error codes of a condition that is not met: another writer came first."""


def object_store(folder: LakePath) -> ObjectStore:
    """Return the store of the objects in a folder or in a prefix of a bucket."""
    return S3ObjectStore(folder) if isinstance(folder, S3Path) else LocalObjectStore(folder)


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


def _age_s(answer: Mapping[str, Any]) -> float:
    """Return a lower limit of the seconds since the put, by the store's clock, which has whole seconds."""
    now = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
    return float((now - answer["LastModified"]).total_seconds()) - 1
