"""A cache of small objects that this process has read from a bucket or written to it."""

from __future__ import annotations

from millrace.contracts.lake_path import S3Path

_MAX_BYTES = 16 * 1024**2

_contents: dict[S3Path, tuple[str, bytes]] = {}
"""Object -> its etag and content, those that were cached first at the start."""


def cached_content(file: S3Path, etag: str | None = None) -> bytes | None:
    """Return the content with this etag, or without one that of an object that never changes; None if not cached."""
    cached_etag, content = _contents.get(file, (None, None))
    return content if etag in (None, cached_etag) else None


def cache_content(file: S3Path, content: bytes, etag: str) -> None:
    """Cache the content of an object; a full cache removes the oldest contents."""
    _contents[file] = etag, content
    while sum(len(content) for _, content in list(_contents.values())) > _MAX_BYTES:
        _contents.pop(next(iter(_contents)), None)
