"""Whether a store keeps the promise that every commit rests on: a conditional put creates an object once."""

from __future__ import annotations

from functools import cache
from uuid import uuid4

from include.contracts.lake_path import S3Path
from include.control.storage.objects_on_s3 import S3ObjectStore
from include.errors import StorageError


@cache
def require_conditional_puts(folder: S3Path) -> None:
    """Put an object there twice on the condition that there is none; asked once a process.

    Raises:
        StorageError: the second put was not refused: two writers could both win one version of a table.
    """
    store, key = S3ObjectStore(folder), f"probe-{uuid4().hex}"
    store.put_if_absent(key, b"first")
    is_replaced = bool(store.put_if_absent(key, b"second"))
    if (left := store.get(key)) is not None:
        store.delete_if_match(key, left.etag)
    if is_replaced:
        msg = (
            f"The store of {folder} replaces objects though it was asked not to (If-None-Match)\nTwo writers could "
            "both win one version of a table, and rows would be lost without an error; nothing was written. Keep the "
            "tables in a store that knows conditional puts, as S3 itself does, or on a disk; or name a folder that all "
            "machines share in LAKEHOUSE_LEASE_STORE, and know what that costs (docs/guides/tables-in-a-bucket.md)."
        )
        raise StorageError(msg)
