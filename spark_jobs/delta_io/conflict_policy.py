"""What becomes of a write that meets a conflict: for each kind of write and each of Delta's conflicts one remedy.

`docs/guides/conflicts.md` shows it as a table; `tests/spark/delta_io/test_conflicts_of_delta.py` provokes each conflict
that Delta 4.4 can raise.
"""

from __future__ import annotations

from enum import StrEnum

from spark_jobs.delta_io.conflicts import Conflict


class WriteKind(StrEnum):
    """The kinds of commits that Millrace makes, by what they hang on.

    A batch is an append, a MERGE, a `replaceWhere` or an overwrite with a number and a token; what is beside it are
    quarantined rows and tombstones, with the same number; maintenance is OPTIMIZE, VACUUM and the DELETE of old
    tombstones; schema is CREATE and ALTER TABLE; a restore takes back a refused version.
    """

    BATCH = "batch"
    BESIDE = "beside a batch"
    MAINTENANCE = "maintenance"
    SCHEMA = "schema"
    RESTORE = "restore"


class Remedy(StrEnum):
    """What a writer does that has lost a race."""

    COMMIT_AGAIN = "commit again"
    """The same rows, of the same pinned sources, on the table as it is now; a batch keeps its number and its token."""

    PLAN_AGAIN = "plan again"
    """Look what is there, then plan afresh: what was planned may be done, or be void."""

    DONE = "done"
    """What was to be written is there: the winner wrote the same."""

    GIVE_UP = "give up"
    """Nothing that this run could do would be right."""


_OF_FILES = (
    Conflict.CONCURRENT_APPEND,
    Conflict.CONCURRENT_DELETE_READ,
    Conflict.CONCURRENT_DELETE_DELETE,
    Conflict.CONCURRENT_WRITE,
)
"""Somebody changed files that were read. The sources of a batch are pinned, so that its rows stay the same."""

_OF_THE_TABLE = (Conflict.METADATA_CHANGED, Conflict.PROTOCOL_CHANGED)
"""The table may have other columns now."""

_AGAIN_IN_ANY_CASE = dict.fromkeys((*_OF_FILES, *_OF_THE_TABLE), Remedy.COMMIT_AGAIN)

POLICY: dict[WriteKind, dict[Conflict, Remedy]] = {
    WriteKind.BATCH: {
        **dict.fromkeys(_OF_FILES, Remedy.COMMIT_AGAIN),
        **dict.fromkeys(_OF_THE_TABLE, Remedy.PLAN_AGAIN),
        # Somebody else committed the number: his batch may hold our rows.
        Conflict.CONCURRENT_TRANSACTION: Remedy.PLAN_AGAIN,
    },
    # The same batch has the same rows beside it, whoever writes them.
    WriteKind.BESIDE: {**_AGAIN_IN_ANY_CASE, Conflict.CONCURRENT_TRANSACTION: Remedy.DONE},
    # It reads the table anew, and does what is still to be done. It has no number that could be taken.
    WriteKind.MAINTENANCE: {**_AGAIN_IN_ANY_CASE, Conflict.CONCURRENT_TRANSACTION: Remedy.GIVE_UP},
    WriteKind.SCHEMA: {**_AGAIN_IN_ANY_CASE, Conflict.CONCURRENT_TRANSACTION: Remedy.GIVE_UP},
    # Something came after the refused version: to take that back as well would lose it.
    WriteKind.RESTORE: dict.fromkeys(Conflict, Remedy.GIVE_UP),
}


def remedy_of(kind: WriteKind, conflict: Conflict) -> Remedy:
    """What a write of this kind does about the conflict.

    >>> remedy_of(WriteKind.BATCH, Conflict.CONCURRENT_APPEND)
    <Remedy.COMMIT_AGAIN: 'commit again'>
    """
    return POLICY[kind][conflict]
