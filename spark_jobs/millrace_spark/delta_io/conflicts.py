"""Delta's concurrent-modification errors, recognised by their type or condition, not by words of a message."""

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
