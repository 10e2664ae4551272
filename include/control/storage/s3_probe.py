"""A check that a store has conditional puts, on which every commit depends."""

from __future__ import annotations

from functools import cache
from uuid import uuid4

from include.contracts.lake_path import S3Path
from include.control.storage.objects_on_s3 import S3ObjectStore
from include.errors import StorageError


@cache
def require_conditional_puts(folder: S3Path) -> None:
    """Require that the store refuses the second of two conditional puts; each process checks it once.

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
            "nothing was written. Keep the tables in a store with conditional puts, such as S3 itself, or on a disk. "
            "Or set LAKEHOUSE_LEASE_STORE to a folder that all machines share, with the limits that "
            "docs/guides/tables-in-a-bucket.md describes.",
        )
