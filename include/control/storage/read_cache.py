"""What was read of a bucket a moment ago, for stretches of a job in which nobody has to look again.

A job asks the same of a table's log many times between two writes: which version is the newest, who made it, what its
state is. Each of these questions is a request, or several. Within `cached_reads` the answers are kept, for this thread
alone, and forgotten whenever something may have changed that the job must see: when a batch is resolved, around
whatever Spark does, and when somebody else has won a conditional put. What the thread puts itself is known at once.
Outside of `cached_reads` every look is a new one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from include.contracts.lake_path import LakePath, S3Path

Seen = TypeVar("Seen")


@dataclass
class Listing:
    """The names in a folder above one of them, with the tag that the store gives to each content."""

    after: str
    etags: dict[str, str]


@dataclass
class _Looks:
    objects: dict[tuple[type, S3Path], Any] = field(default_factory=dict)
    listings: dict[S3Path, Listing] = field(default_factory=dict)


class _OfThread(threading.local):
    looks: _Looks | None = None


_of_thread = _OfThread()


@contextmanager
def cached_reads() -> Iterator[None]:
    """Keep what this thread reads of a bucket within, until `clear_read_cache`."""
    with _set(_Looks()):
        yield


@contextmanager
def uncached_reads() -> Iterator[None]:
    """Look anew at everything within, and at everything after it: somebody else is at work, Spark say."""
    try:
        with _set(None):
            yield
    finally:
        clear_read_cache()


def clear_read_cache() -> None:
    """Forget what was seen: others may have changed it, and it counts."""
    if _of_thread.looks is not None:
        _of_thread.looks = _Looks()


def cached_object(kind: type[Seen], file: S3Path, look: Callable[[], Seen]) -> Seen:
    """What an object is, as it was seen last, else by a look."""
    looks = _of_thread.looks
    if looks is None:
        return look()
    if (kind, file) not in looks.objects:
        looks.objects[kind, file] = look()
    found: Seen = looks.objects[kind, file]
    return found


def cached_names(folder: S3Path, after: str, look: Callable[[], dict[str, str]]) -> dict[str, str]:
    """Name -> tag of the files above a name, as they were seen last, else by a look."""
    looks = _of_thread.looks
    if looks is None:
        return look()
    known = looks.listings.get(folder)
    if known is None or known.after > after:
        known = looks.listings[folder] = Listing(after, look())
    return {name: etag for name, etag in known.etags.items() if name > after}


def cached_etag(file: S3Path) -> str:
    """The tag of a file's content, where its folder was listed; empty where it was not."""
    looks = _of_thread.looks
    known = looks.listings.get(_folder(file)) if looks else None
    return known.etags.get(file.name, "") if known else ""


def note_put(file: S3Path, etag: str) -> None:
    """Know of an object that this thread has put."""
    looks = _of_thread.looks
    if looks is None:
        return
    for kind, seen in [one for one in looks.objects if one[1] == file]:
        del looks.objects[kind, seen]
    known = looks.listings.get(_folder(file))
    if known and file.name > known.after:
        known.etags[file.name] = etag


def note_last_file(folder: LakePath, name: str, etag: str) -> None:
    """Know of a file that this thread has put, and that no name in its folder comes after."""
    looks = _of_thread.looks
    if looks is not None and isinstance(folder, S3Path):
        looks.listings.setdefault(folder, Listing(name.partition(".")[0], {name: etag}))


def is_caching(file: LakePath) -> bool:
    """Whether what this thread reads there is kept."""
    return _of_thread.looks is not None and isinstance(file, S3Path)


def cache_object(kind: type[Seen], file: S3Path, seen: Seen) -> None:
    """Know what an object is that this thread has put."""
    if _of_thread.looks is not None:
        _of_thread.looks.objects[kind, file] = seen


def _folder(file: S3Path) -> S3Path:
    return S3Path(file.parent)


@contextmanager
def _set(looks: _Looks | None) -> Iterator[None]:
    before, _of_thread.looks = _of_thread.looks, looks
    try:
        yield
    finally:
        _of_thread.looks = before
