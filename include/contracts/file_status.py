"""Where a landing file stands."""

from __future__ import annotations

from enum import StrEnum


class FileStatus(StrEnum):
    """Where a file stands.

    A `planned` file belongs to an attempt that has not committed, or came to nothing: the next run plans it again.
    Without a `given_up` one runs go on, since a person has said so. An `unreachable` one the storage did not hand over
    when it was last asked; nothing is held against it.
    """

    LOADED = "loaded"
    PLANNED = "planned"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    GIVEN_UP = "given_up"
