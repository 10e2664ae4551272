"""Creating a Delta table while others create it too, and after a driver that died while it did."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from include.contracts.lake_path import LakePath
from include.control.log.stored_tables import is_table
from include.control.storage.stored_files import names_in
from include.errors import BadInputError
from spark_jobs.delta_io.conflicts import Conflict, conflict_of

PATIENCE_S = 5.0
"""How long a folder may look as if another driver were just making its table: from `_delta_log` to the first commit."""

_NOT_EMPTY = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
_ANOTHER_WAS_FIRST = {Conflict.PROTOCOL_CHANGED, Conflict.METADATA_CHANGED, Conflict.CONCURRENT_WRITE}


class _BeingMadeError(Exception):
    """The folder is not empty, and there is no table yet."""


def create_table(path: LakePath, create: Callable[[], Any]) -> None:
    """Run `create`, which makes the table at `path`, unless there is one; another driver's table is as good.

    Raises:
        BadInputError: the folder holds something that is no table.
    """
    patient = Retrying(
        retry=retry_if_exception_type(_BeingMadeError), stop=stop_after_delay(PATIENCE_S), wait=wait_fixed(0.2)
    )
    try:
        patient(_create_once, path, create)
    except RetryError:
        _remove_dead_creation(path)
        _create_at_last(path, create)


def _create_once(path: LakePath, create: Callable[[], Any]) -> None:
    if is_table(path):
        return
    try:
        create()
    except Exception as error:
        if isinstance(error, PySparkException) and (error.getCondition() or "").startswith(_NOT_EMPTY):
            raise _BeingMadeError from error
        if conflict_of(error) not in _ANOTHER_WAS_FIRST:
            raise
    # IF NOT EXISTS is content with a folder that merely exists.
    if not is_table(path):
        raise _BeingMadeError


def _create_at_last(path: LakePath, create: Callable[[], Any]) -> None:
    try:
        _create_once(path, create)
    except _BeingMadeError as error:
        inside = ", ".join(sorted(names_in(path))[:5])
        msg = (
            f"The folder {path} is to become a table, but holds something else: {inside}\nMove it away, then clear "
            "this task."
        )
        raise BadInputError(msg) from error


def _remove_dead_creation(path: LakePath) -> None:
    """Remove what a driver leaves that dies between making `_delta_log` and its first commit; never a file of a table.

    One that is only slow finds its folder gone, fails, and tries again.
    """
    if not isinstance(path, Path):
        return  # a bucket has no folders that could be left empty
    log = path / "_delta_log"
    for temporary in log.glob(".*.tmp"):
        temporary.unlink(missing_ok=True)
    for folder in (log, path):
        with suppress(OSError):  # not empty, or not there: then the next try says so
            folder.rmdir()
