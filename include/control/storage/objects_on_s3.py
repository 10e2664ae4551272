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

_LOST = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "404", "409", "412")
"""What a store says of a condition that does not hold (any more): another writer was faster."""


def object_store(folder: LakePath) -> ObjectStore:
    """The objects of a folder, on a disk or in a bucket."""
    return S3ObjectStore(folder) if isinstance(folder, S3Path) else LocalObjectStore(folder)


class S3ObjectStore:
    """Objects under one prefix of a bucket. The store decides each conditional put as one step."""

    def __init__(self, folder: S3Path) -> None:
        self._folder = folder

    def get(self, key: str) -> StoredObject | None:
        """The object, or None when there is none."""
        try:
            with translate_storage_errors(str(self._folder / key)):
                found = s3_client().get_object(Bucket=self._folder.bucket, Key=(self._folder / key).key)
                return StoredObject(found["Body"].read(), found["ETag"], _age_s(found))
        except FileNotFoundError:
            return None

    def put_if_absent(self, key: str, body: bytes) -> str:
        """Create the object; its etag, empty when it exists. After a lost answer the object itself says whose it is."""
        return self._put(key, body, IfNoneMatch="*")

    def put_if_match(self, key: str, body: bytes, etag: str) -> str:
        """Replace the object that has `etag`; its new one, empty when it is another object by now, or gone."""
        return self._put(key, body, IfMatch=etag)

    def delete_if_match(self, key: str, etag: str) -> bool:
        """Remove the object that has `etag`; False when it is another one by now, or gone.

        A store that knows no conditional delete may remove one that was put a moment ago, by whom took over.
        """
        return self._answer(key, s3_client().delete_object, IfMatch=etag) is not None

    def keys(self, prefix: str) -> list[str]:
        """The keys that start with `prefix`, sorted."""
        return sorted(name for name, _ in objects_in(self._folder, prefix))

    def _put(self, key: str, body: bytes, **condition: str) -> str:
        answer = self._answer(key, s3_client().put_object, Body=body, **condition)
        etag = str(answer["ETag"]) if answer is not None else self._etag_if_mine(key, body)
        if etag:
            note_put(self._folder / key, etag)
            cache_content(self._folder / key, body, etag)
        else:
            clear_read_cache()
        return etag

    def _answer(self, key: str, act: Callable[..., Any], **arguments: Any) -> Any:
        """The store's answer; None where the condition does not hold."""
        from botocore.exceptions import ClientError

        with translate_storage_errors(str(self._folder / key)):
            try:
                return act(Bucket=self._folder.bucket, Key=(self._folder / key).key, **arguments)
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") in _LOST:
                    return None
                raise

    def _etag_if_mine(self, key: str, body: bytes) -> str:
        """The etag of what was to be put, if it is there: bodies carry a nonce, so no two writers' are the same."""
        found = self.get(key)
        return found.etag if found is not None and found.body == body else ""


def _age_s(found: Mapping[str, Any]) -> float:
    """How long ago the object was put, by the store's own clock, which tells whole seconds; never too long."""
    now = parsedate_to_datetime(found["ResponseMetadata"]["HTTPHeaders"]["date"])
    return float((now - found["LastModified"]).total_seconds()) - 1
