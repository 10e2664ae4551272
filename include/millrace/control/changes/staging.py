"""The separate folder in which a rebuild builds tables, with its own ledger."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from deltalake import QueryBuilder, write_deltalake

from millrace.contracts.lake_path import LakePath
from millrace.control.ledger.deletes import DeleteRecords, Deletes
from millrace.control.ledger.events import BATCHES, FILES, FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.new_columns import COLUMNS
from millrace.control.ledger.ops_table import OpsTable
from millrace.control.ledger.states.table_state import TableStates
from millrace.control.log.stored_tables import is_table, open_table, options_of
from millrace.control.log.table_queries import text_literals
from millrace.control.storage.read_cache import clear_read_cache
from millrace.control.storage.s3_access import s3_client, translate_storage_errors
from millrace.paths import LakehousePaths

log = logging.getLogger(__name__)

_COPIED_TABLES = ("batches", "files", "gates", "quarantine")
"""The ledger tables that the readers of a table need."""

_FAILURE_EVENTS = (FileEvent.FAILED, FileEvent.REPLAYED, FileEvent.GIVEN_UP, FileEvent.TOUCHED)
"""The events of files that could not be loaded."""

_STREAM = "rebuild"
"""The stream of the batches that loaded a table during its rebuild."""


@dataclass(frozen=True)
class StagedPaths(LakehousePaths):
    """The paths of the lakehouse for a rebuild: the tables that it builds are in `staging`, all others in place."""

    staging: LakePath = Path()
    rebuilt: frozenset[str] = frozenset()

    def root_of(self, table: str) -> LakePath:
        """Return the folder that holds a table: `staging` if the rebuild builds it."""
        return self.staging if table in self.rebuilt else self.root

    @property
    def ledger_root(self) -> LakePath:
        """The folder of the rebuild's own ledger and leases: nobody else writes to the tables that it builds."""
        return self.staging


class StagedDeletes(DeleteRecords):
    """The deletes of absent keys that a person allowed, for a rebuild (`staged`) and for the tables in use (`live`)."""

    def __init__(self, staged: LakehousePaths, live: DeleteRecords) -> None:
        super().__init__(staged)
        self._live = live
        self._ledger = Ledger(staged)

    def allowed_deletes(self, table: str, table_id: str, source_id: str) -> list[Deletes]:
        """Return the allowed deletes, also those of the table in use, by the versions of this source."""
        earlier = self._live.all_allowed_deletes(table)
        return [
            *super().allowed_deletes(table, table_id, source_id),
            *(self._in_source(source_id, item) for item in earlier),
        ]

    def _in_source(self, source_id: str, allowed: Deletes) -> Deletes:
        """Return the same deletes for this source; if the source was rebuilt, they are in its first version."""
        if allowed.source_id == source_id:
            return allowed
        batches = self._ledger.batches(allowed.source, source_id, -1)
        first = batches[0].version if batches else allowed.source_version
        return replace(allowed, source_id=source_id, source_version=first)


def staged_paths(paths: LakehousePaths, rebuild: str, tables: Iterable[str]) -> StagedPaths:
    """Return the paths for a rebuild of tables."""
    return StagedPaths(paths.root, paths.rebuilds / rebuild, frozenset(tables))


def copy_ledger(live: LakehousePaths, staged: StagedPaths, others: Collection[str]) -> None:
    """Copy the ledger's events of the tables that a rebuild reads, but does not build, to the staged ledger.

    They replace the staged events of these tables. The staged events of the tables that it builds stay.
    """
    for table in others:
        TableStates(staged).delete(table)
    for name in _COPIED_TABLES if others else ():
        if is_table(live.ops(name)):
            _copy(live.ops(name), staged.ops(name), sorted(others))
    # The new columns of a table apply also to its rebuild. They are copied once: afterwards the rebuild adds its own.
    if not is_table(staged.ops("columns")):
        columns = OpsTable.of(live, "columns", COLUMNS)
        earlier = [event for table in sorted(staged.rebuilt) for event in columns.events(table)]
        OpsTable.of(staged, "columns", COLUMNS).append(earlier)


def _copy(source: LakePath, target: LakePath, tables: Collection[str]) -> None:
    condition = f'"table" IN ({text_literals(tables)})'
    rows = QueryBuilder().register("stored", open_table(source)).execute(f"SELECT * FROM stored WHERE {condition}")
    if is_table(target):
        open_table(target).delete(condition)
    options = options_of(target)
    write_deltalake(
        str(target), rows, mode="append", schema_mode="merge", partition_by=["table"], storage_options=options
    )
    clear_read_cache()


def copy_loads(live: LakehousePaths, staged: StagedPaths, table: str, ids: tuple[str, str], version: int) -> None:
    """Record the loads of a rebuild whose rows are `version` of the table, once per version.

    Its batches belong to another log. They have a stream of their own, and all of them are in that version. A file that
    could not be loaded keeps its number of tries, and stays given up. `ids` are the ids of the table before and after.
    """
    earlier, table_id = ids
    for name, schema in (("files", FILES), ("batches", BATCHES)):
        events = OpsTable.of(live, name, schema)
        failures = events.find(table, table_id=[earlier], event=_FAILURE_EVENTS) if name == "files" else []
        rows = OpsTable.of(staged, name, schema).find(table, table_id=[table_id])
        loaded = [{**row, "stream": _STREAM, "version": row["version"] and version} for row in rows]
        kept = [{**row, "table_id": table_id} for row in failures]
        events.append_once([*kept, *loaded], f"{table_id}/{table}/{version}")


def remove_staging(staged: StagedPaths) -> None:
    """Delete the folder of a rebuild; readers use nothing in it.

    What cannot be deleted now is logged, and tried again when the next rebuild of the table begins.
    """
    folder = staged.staging
    if isinstance(folder, Path):
        shutil.rmtree(folder, onerror=lambda _, path, error: _log_remaining(path, error[1]))
        return
    with translate_storage_errors(str(folder)):
        pages = s3_client().get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=folder.bucket, Prefix=f"{folder.key}/"):
            if keys := [{"Key": entry["Key"]} for entry in page.get("Contents", ())]:
                answer = s3_client().delete_objects(Bucket=folder.bucket, Delete={"Objects": keys, "Quiet": True})
                for error in answer.get("Errors", ()):
                    _log_remaining(error["Key"], error.get("Message"))
    clear_read_cache()


def _log_remaining(path: str, reason: object) -> None:
    if not isinstance(reason, FileNotFoundError):
        log.warning("%s, a file of an earlier rebuild, could not be deleted: %s", path, reason)
