"""A cache of what a thread has read from a bucket, for the parts of a job in which it need not read again.

Between two writes, a job needs the same facts of a table many times: its newest version, the commit, the state. Each of
them takes one request or several. Within `cached_reads` this thread caches them. It clears the cache whenever the job
must see a change: when it resolves a batch, around the work of Spark, and when another writer has won a conditional
put. The thread's own puts update the cache. Outside of `cached_reads` nothing is cached.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from millrace.contracts.lake_path import LakePath, S3Path

Value = TypeVar("Value")


@dataclass
class Listing:
    """The names in a folder after the name `after`, with the etag of each file."""

    after: str
    etags: dict[str, str]


@dataclass
class _Cache:
    objects: dict[S3Path, Any] = field(default_factory=dict)
    listings: dict[S3Path, Listing] = field(default_factory=dict)


class _OfThread(threading.local):
    cache: _Cache | None = None


_of_thread = _OfThread()


@contextmanager
def cached_reads() -> Iterator[None]:
    """Cache what this thread reads from a bucket within the block, until `clear_read_cache`."""
    with _set(_Cache()):
        yield


@contextmanager
def uncached_reads() -> Iterator[None]:
    """Cache nothing within the block, and clear the cache after it, because another process such as Spark writes."""
    try:
        with _set(None):
            yield
    finally:
        clear_read_cache()


def clear_read_cache() -> None:
    """Clear the cache of this thread, because another writer may have changed something."""
    if _of_thread.cache is not None:
        _of_thread.cache = _Cache()


def cached_object(file: LakePath, read: Callable[[], Value]) -> Value:
    """Return the value of an object from the cache; call `read` if it is not cached."""
    cache = _of_thread.cache
    if cache is None or not isinstance(file, S3Path):
        return read()
    if file not in cache.objects:
        cache.objects[file] = read()
    value: Value = cache.objects[file]
    return value


def cached_names(folder: S3Path, after: str, read: Callable[[], dict[str, str]]) -> dict[str, str]:
    """Return name -> etag of the files after a name from the cache; call `read` if they are not cached."""
    cache = _of_thread.cache
    if cache is None:
        return read()
    listing = cache.listings.get(folder)
    if listing is None or listing.after > after:
        listing = cache.listings[folder] = Listing(after, read())
    return {name: etag for name, etag in listing.etags.items() if name > after}


def cached_etag(file: S3Path) -> str:
    """Return the etag of a file from the cached listing of its folder; empty if it is not cached."""
    listing = _of_thread.cache.listings.get(S3Path(file.parent)) if _of_thread.cache else None
    return listing.etags.get(file.name, "") if listing else ""


def note_put(file: S3Path, etag: str) -> None:
    """Update the cache after a put of this thread."""
    cache = _of_thread.cache
    if cache is None:
        return
    cache.objects.pop(file, None)
    listing = cache.listings.get(S3Path(file.parent))
    if listing and file.name > listing.after:
        listing.etags[file.name] = etag


def note_last_file(folder: LakePath, name: str, etag: str) -> None:
    """Cache the listing of a folder whose last file this thread has put."""
    if _of_thread.cache is not None and isinstance(folder, S3Path):
        _of_thread.cache.listings.setdefault(folder, Listing(name.partition(".")[0], {name: etag}))


def is_caching(file: LakePath) -> bool:
    """Whether this thread caches what it reads there."""
    return _of_thread.cache is not None and isinstance(file, S3Path)


def cache_object(file: LakePath, value: object) -> None:
    """Cache the value of an object that this thread has put."""
    if _of_thread.cache is not None and isinstance(file, S3Path):
        _of_thread.cache.objects[file] = value


@contextmanager
def _set(cache: _Cache | None) -> Iterator[None]:
    before, _of_thread.cache = _of_thread.cache, cache
    try:
        yield
    finally:
        _of_thread.cache = before
