"""A cache of small objects that this process has read from a bucket or written to it."""

from __future__ import annotations

from include.contracts.lake_path import S3Path


class ContentCache:
    """The contents of objects with their etags, at most `max_bytes`; a full cache removes the oldest contents."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._contents: dict[S3Path, tuple[str, bytes]] = {}

    def get(self, file: S3Path, etag: str = "") -> bytes | None:
        """Return the content with this etag; None if it is not cached."""
        cached_etag, content = self._contents.get(file, (None, b""))
        return content if cached_etag == etag else None

    def put(self, file: S3Path, content: bytes, etag: str = "") -> None:
        """Cache the content of an object."""
        self._contents[file] = etag, content
        while sum(len(content) for _, content in list(self._contents.values())) > self._max_bytes:
            self._contents.pop(next(iter(self._contents)), None)
