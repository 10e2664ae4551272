"""What a write does about a conflict: one remedy for each kind of write and each of Delta's conflicts.

`docs/guides/conflicts.md` shows it as a table; `tests/spark/delta_io/test_conflicts_of_delta.py` provokes each conflict
that Delta 4.4 can raise.

Delta's errors are recognised by their type or condition, not by words of a message.
"""

from __future__ import annotations

import re
from enum import StrEnum


class Conflict(StrEnum):
    """The conflicts that Delta raises: `DELTA_` and the name is the condition, the value the name of the class."""

    CONCURRENT_APPEND = "ConcurrentAppendException"
    CONCURRENT_DELETE_READ = "ConcurrentDeleteReadException"
    CONCURRENT_DELETE_DELETE = "ConcurrentDeleteDeleteException"
    CONCURRENT_TRANSACTION = "ConcurrentTransactionException"
    CONCURRENT_WRITE = "ConcurrentWriteException"
    METADATA_CHANGED = "MetadataChangedException"
    PROTOCOL_CHANGED = "ProtocolChangedException"


_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+)[.\]]")
"""The first condition in a message is the error's own; a later one may be quoted data."""


def conflict_of(error: BaseException) -> Conflict | None:
    """Return the conflict that `error` reports, or None.

    Over Spark Connect conditions have suffixes (`DELTA_CONCURRENT_APPEND.WITHOUT_HINT`); a bare Py4JJavaError has its
    condition at the start of the Java message.

    >>> conflict_of(RuntimeError("[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] files were added"))
    <Conflict.CONCURRENT_APPEND: 'ConcurrentAppendException'>
    >>> conflict_of(RuntimeError("concurrent append")) is None
    True
    """
    name = type(error).__name__
    if name in Conflict._value2member_map_:
        return Conflict(name)
    condition = _CONDITION.search(str(error))
    if condition is None:
        return None
    return next((kind for kind in Conflict if condition[1].startswith(f"DELTA_{kind.name}")), None)


def is_lost_with_an_executor(error: BaseException) -> bool:
    """Whether cached rows are lost with the executor that kept them; only a new plan can compute them again.

    >>> is_lost_with_an_executor(RuntimeError("[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_7_0 not f..."))
    True
    """
    return "[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND]" in str(error)


class WriteKind(StrEnum):
    """The kinds of commits that Millrace makes.

    A batch is an append, a MERGE, a `replaceWhere` or an overwrite with a number and a token. A secondary write of a
    batch writes quarantined rows or tombstones, with the same number. Maintenance is OPTIMIZE, VACUUM and the DELETE of
    old tombstones. Schema is CREATE and ALTER TABLE. A restore undoes a refused version.
    """

    BATCH = "batch"
    SECONDARY = "secondary write"
    MAINTENANCE = "maintenance"
    SCHEMA = "schema"
    RESTORE = "restore"


class Remedy(StrEnum):
    """What a writer does after a conflict."""

    COMMIT_AGAIN = "commit again"
    """Write the same rows of the same pinned sources to the newest version; a batch keeps its number and token."""

    PLAN_AGAIN = "plan again"
    """Read the table's state and plan again: the planned work may be done already, or not apply any more."""

    DONE = "done"
    """Nothing: the other writer wrote the same rows."""

    GIVE_UP = "give up"
    """Fail: nothing that this run could write would be right."""


_OF_FILES = (
    Conflict.CONCURRENT_APPEND,
    Conflict.CONCURRENT_DELETE_READ,
    Conflict.CONCURRENT_DELETE_DELETE,
    Conflict.CONCURRENT_WRITE,
)
"""Another writer changed files that were read. The sources of a batch are pinned, so its rows stay the same."""

_OF_THE_TABLE = (Conflict.METADATA_CHANGED, Conflict.PROTOCOL_CHANGED)
"""The table may have other columns now."""

_ALWAYS_AGAIN = dict.fromkeys((*_OF_FILES, *_OF_THE_TABLE), Remedy.COMMIT_AGAIN)

POLICY: dict[WriteKind, dict[Conflict, Remedy]] = {
    WriteKind.BATCH: {
        **dict.fromkeys(_OF_FILES, Remedy.COMMIT_AGAIN),
        **dict.fromkeys(_OF_THE_TABLE, Remedy.PLAN_AGAIN),
        # Another writer committed the batch's number: its batch may contain our rows.
        Conflict.CONCURRENT_TRANSACTION: Remedy.PLAN_AGAIN,
    },
    # The secondary rows of a batch are the same, whoever writes them.
    WriteKind.SECONDARY: {**_ALWAYS_AGAIN, Conflict.CONCURRENT_TRANSACTION: Remedy.DONE},
    # It reads the table again, and does the rest of the work. It has no number that another writer could use.
    WriteKind.MAINTENANCE: {**_ALWAYS_AGAIN, Conflict.CONCURRENT_TRANSACTION: Remedy.GIVE_UP},
    WriteKind.SCHEMA: {**_ALWAYS_AGAIN, Conflict.CONCURRENT_TRANSACTION: Remedy.GIVE_UP},
    # Another version followed the refused one: a restore would lose it.
    WriteKind.RESTORE: dict.fromkeys(Conflict, Remedy.GIVE_UP),
}


def remedy_of(kind: WriteKind, conflict: Conflict) -> Remedy:
    """Return what a write of this kind does about the conflict.

    >>> remedy_of(WriteKind.BATCH, Conflict.CONCURRENT_APPEND)
    <Remedy.COMMIT_AGAIN: 'commit again'>
    """
    return POLICY[kind][conflict]
