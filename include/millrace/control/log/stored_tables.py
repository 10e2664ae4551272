"""Open Delta tables with delta-rs, in a folder or in a bucket, without a JVM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from millrace.contracts.lake_path import LakePath, S3Path
from millrace.contracts.spec.values import LAYERS, TABLE
from millrace.control.storage.s3_access import delta_rs_options, translate_storage_errors
from millrace.control.storage.stored_files import folders_in
from millrace.errors import TornLogError, first_line

TABLE_ID = "millrace.table_id"
"""The table property in which a rebuild stores the id of the new table."""

_PANIC = "delta-rs panicked"


def open_table(path: LakePath, version: int | None = None, *, without_files: bool = False) -> DeltaTable:
    """Open the table at `path`.

    Args:
        path: its folder.
        version: a version; None for the newest.
        without_files: whether to leave out the list of data files, if only the metadata is needed.

    Raises:
        TableNotFoundError: there is no table at the path.
        TornLogError: its log cannot be read.
        DeltaError: the requested version cannot be read.
        NotReadyError: the store does not answer.
        StorageError: the store refuses the request.
    """
    try:
        with _translate_errors(path), _panics_as_errors():
            return DeltaTable(str(path), version=version, without_files=without_files, storage_options=options_of(path))
    except TableNotFoundError:
        raise
    except DeltaError as error:
        if version is not None:
            raise
        raise torn_log(path, error) from error


def logged_files(delta: DeltaTable, *, flatten: bool = True) -> pa.Table:
    """Return the data files of an open table by its log: `path`, `num_records`, statistics, partition values.

    Args:
        delta: the table.
        flatten: whether the least values of a column `n` are the column `min.n`, and not the field `n` of `min`.

    Raises:
        TornLogError: the log has something that delta-rs cannot read.
    """
    try:
        with _panics_as_errors():
            return pa.table(delta.get_add_actions(flatten=flatten))
    except DeltaError as error:
        raise torn_log(delta.table_uri, error) from error


def torn_log(path: object, error: DeltaError) -> TornLogError:
    """Return the error that a table's log cannot be read."""
    way_out = "Do not write; restore the missing or damaged files of _delta_log from a backup."
    if any(sign in str(error) for sign in ("Failed to parse value", _PANIC)):
        way_out = "delta-rs cannot hold a value in it. Correct the value where it comes from, and rebuild the table."
    return TornLogError(f"The log of {path} cannot be read: {first_line(error)}", way_out)


def identity(delta: DeltaTable) -> str:
    """Return the id of an open table: Delta's own, or the id that a rebuild has set.

    Delta invents an id when a table is replaced. A rebuild needs the id before the switch, to record the new rows
    under it; so its commit sets the id.
    """
    metadata = delta.metadata()
    return str(metadata.configuration.get(TABLE_ID, metadata.id))


def is_table(path: LakePath) -> bool:
    """Whether there is a table at the path."""
    with _translate_errors(path):
        return DeltaTable.is_deltatable(str(path), storage_options=options_of(path))


def tables_in(root: LakePath) -> list[str]:
    """Return the tables of a lakehouse, in the order of the layers; not the ledger, quarantines and tombstones."""
    folders = [f"{layer}.{name}" for layer in LAYERS for name in sorted(folders_in(root / layer))]
    return [table for table in folders if TABLE.fullmatch(table)]


def options_of(path: LakePath) -> dict[str, str] | None:
    """Return the storage options with which delta-rs reaches the path."""
    return delta_rs_options() if isinstance(path, S3Path) else None


def _translate_errors(path: LakePath) -> AbstractContextManager[None]:
    return translate_storage_errors(str(path)) if isinstance(path, S3Path) else nullcontext()


@contextmanager
def _panics_as_errors() -> Iterator[None]:
    """Raise a `DeltaError` for a panic of delta-rs, which is no `Exception`, and would end what other tables need."""
    try:
        yield
    except BaseException as error:
        if type(error).__module__ != "pyo3_runtime":
            raise
        raise DeltaError(f"{_PANIC}: {error}") from error
