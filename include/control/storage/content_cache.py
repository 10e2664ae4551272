"""The content of small objects of a bucket that this process has read or written last."""

from __future__ import annotations

from include.contracts.lake_path import S3Path


class ContentCache:
    """Contents by object, and by the tag that the store gave to them; the oldest go where it gets too much.

    Args:
        most_bytes: how much is kept.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept: dict[S3Path, tuple[str, bytes]] = {}

    def get(self, file: S3Path, etag: str = "") -> bytes | None:
        """The content that had this tag; None where it is not kept."""
        known = self._kept.get(file)
        return known[1] if known and known[0] == etag else None

    def keep(self, file: S3Path, content: bytes, etag: str = "") -> None:
        """Keep a content."""
        self._kept[file] = etag, content
        while sum(len(kept) for _, kept in list(self._kept.values())) > self._most_bytes:
            self._kept.pop(next(iter(self._kept)), None)
