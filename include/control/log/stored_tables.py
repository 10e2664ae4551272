"""Delta tables as delta-rs opens them, on a disk and in a bucket. No JVM is needed."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from include.contracts.lake_path import LakePath, S3Path
from include.control.storage.s3_access import delta_rs_options, translate_storage_errors
from include.errors import TornLogError, first_line

TABLE_ID = "millrace.table_id"
"""The table property by which a rebuild says which table it has put in the place of the earlier one."""


def open_table(path: LakePath, version: int | None = None, *, without_files: bool = False) -> DeltaTable:
    """The table at `path`, at its newest version or at one.

    Args:
        path: its folder.
        version: a version; None for the newest.
        without_files: do not look which data files it has, for questions about its metadata.

    Raises:
        TableNotFoundError: there is none.
        TornLogError: its log cannot be read; of one version that cannot be had, delta-rs tells by a `DeltaError`.
        NotReadyError: the store does not answer.
        StorageError: it refuses.
    """
    try:
        with _plainly(path):
            return DeltaTable(str(path), version=version, without_files=without_files, storage_options=options_of(path))
    except TableNotFoundError:
        raise
    except DeltaError as error:
        if version is not None:
            raise
        msg = (
            f"The log of {path} cannot be read: {first_line(error)}\nDo not write; restore the missing or damaged "
            "files of _delta_log from a backup."
        )
        raise TornLogError(msg) from error


def identity(delta: DeltaTable) -> str:
    """The id of an open table: Delta's own, or the one that a rebuild has given to its rows.

    Delta makes up an id when a table is replaced. What a rebuild writes down of the new rows before the switch has to
    know it, so the replacing commit states one.
    """
    metadata = delta.metadata()
    return str(metadata.configuration.get(TABLE_ID, metadata.id))


def is_table(path: LakePath) -> bool:
    """Whether there is one."""
    with _plainly(path):
        return DeltaTable.is_deltatable(str(path), storage_options=options_of(path))


def options_of(path: LakePath) -> dict[str, str] | None:
    """What delta-rs must be told to reach the path."""
    return delta_rs_options() if isinstance(path, S3Path) else None


def _plainly(path: LakePath) -> AbstractContextManager[None]:
    return translate_storage_errors(str(path)) if isinstance(path, S3Path) else nullcontext()
