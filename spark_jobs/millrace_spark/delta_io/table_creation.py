"""Create a Delta table while others create it too, and after a driver died while it created it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from millrace.contracts.lake_path import LakePath
from millrace.control.log.stored_tables import is_table
from millrace.control.storage.stored_files import names_in
from millrace.errors import BadInputError
from millrace_spark.delta_io.conflicts import Conflict, conflict_of

PATIENCE_S = 5.0
"""How long to wait for another driver that seems to create the table: from `_delta_log` to the first commit."""

_NOT_EMPTY = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
_ANOTHER_WAS_FIRST = {Conflict.PROTOCOL_CHANGED, Conflict.METADATA_CHANGED, Conflict.CONCURRENT_WRITE}


class _InCreationError(Exception):
    """Raised when the folder is not empty and has no table yet."""


def create_table(path: LakePath, create: Callable[[], Any]) -> None:
    """Run `create`, which creates the table at `path`, unless the table exists; another driver may create it instead.

    Raises:
        BadInputError: the folder contains something that is no table.
    """
    retrying = Retrying(
        retry=retry_if_exception_type(_InCreationError), stop=stop_after_delay(PATIENCE_S), wait=wait_fixed(0.2)
    )
    try:
        retrying(_create_once, path, create)
    except RetryError:
        _remove_dead_creation(path)
        try:
            _create_once(path, create)
        except _InCreationError as error:
            content = ", ".join(sorted(names_in(path))[:5])
            raise BadInputError(
                f"The folder {path} is to become a table, but contains something else: {content}\n"
                "Move it away, then clear this task."
            ) from error


def _create_once(path: LakePath, create: Callable[[], Any]) -> None:
    if is_table(path):
        return
    try:
        create()
    except Exception as error:
        if isinstance(error, PySparkException) and (error.getCondition() or "").startswith(_NOT_EMPTY):
            raise _InCreationError from error
        if conflict_of(error) not in _ANOTHER_WAS_FIRST:
            raise
    # IF NOT EXISTS accepts a folder that merely exists.
    if not is_table(path):
        raise _InCreationError


def _remove_dead_creation(path: LakePath) -> None:
    """Remove what a driver left that died between creating `_delta_log` and the first commit; never a file of a table.

    A driver that is only slow finds its folder missing, fails, and tries again.
    """
    if not isinstance(path, Path):
        return  # a bucket has no empty folders
    log = path / "_delta_log"
    for temporary in log.glob(".*.tmp"):
        temporary.unlink(missing_ok=True)
    for folder in (log, path):
        with suppress(OSError):  # not empty, or missing: the next attempt reports it
            folder.rmdir()
