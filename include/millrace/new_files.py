"""The rights to the files that this process and its children write: they may hold values of rows."""

from __future__ import annotations

import os

from millrace.settings import Settings

HADOOP_UMASK = "spark.hadoop.fs.permissions.umask-mode"
"""The Spark property with the umask of what Spark writes, as octal digits: it does not ask that of its process."""


def restrict_new_files(settings: Settings) -> None:
    """Give others no more rights to what this process writes than the settings, and its umask so far, allow."""
    os.umask(umask_for_rows(settings))


def umask_for_rows(settings: Settings) -> int:
    """Return the umask of a process that writes values of rows: that of this process, and that of the settings."""
    return umask_of_process() | int(settings.umask, 8)


def umask_of_process() -> int:
    """Return the umask of this process; only the system call that sets it tells it."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
