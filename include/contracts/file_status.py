"""Where a landing file stands."""

from __future__ import annotations

from enum import StrEnum


class FileStatus(StrEnum):
    """Where a file stands.

    A `planned` file belongs to an attempt that has not committed, or came to nothing: the next run plans it again.
    """

    LOADED = "loaded"
    PLANNED = "planned"
    FAILED = "failed"
