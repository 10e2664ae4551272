"""The status of a landing file."""

from __future__ import annotations

from enum import StrEnum


class FileStatus(StrEnum):
    """The status of a landing file.

    A `planned` file belongs to an attempt that has not committed, or that failed: the next run plans it again.
    Runs go on without a `given_up` file, because a person decided so. The storage did not deliver an `unreachable` file
    at the last attempt; this does not count as a failure of the file. A restore of the table has removed the rows of an
    `undone` file; the reason says whether the next run loads it again.
    """

    LOADED = "loaded"
    PLANNED = "planned"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    GIVEN_UP = "given_up"
    UNDONE = "undone"
