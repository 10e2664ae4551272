"""Where tables are built anew beside those in use: a folder of their own, with a ledger of its own."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from deltalake import QueryBuilder, write_deltalake

from include.contracts.lake_path import LakePath
from include.control.ledger.deletes import DeleteRecords, Deletes
from include.control.ledger.events import BATCHES, FILES, FileEvent
from include.control.ledger.ledger import Ledger
from include.control.ledger.ops_table import OpsTable
from include.control.ledger.table_state import TableStates
from include.control.log.stored_tables import is_table, open_table, options_of
from include.control.log.table_queries import texts
from include.control.ops_tables import OpsTables
from include.control.storage.looks import look_again
from include.control.storage.s3_access import s3_client, translate_storage_errors
from include.paths import LakehousePaths

log = logging.getLogger(__name__)

_OF_OTHERS = ("batches", "files", "gates", "quarantine")
"""What a table's readers ask the ledger about it."""

_BY_NAME = ("columns",)
"""What counts for every table of a name, also for one that is built anew."""

_OF_FAILURES = (FileEvent.FAILED, FileEvent.REPLAYED, FileEvent.GIVEN_UP, FileEvent.TOUCHED)
"""What is said of files that could not be loaded."""

_STREAM = "rebuild"
"""The stream of the batches that loaded a table while it was built anew."""


@dataclass(frozen=True)
class StagedPaths(LakehousePaths):
    """The lakehouse as a rebuild sees it: the tables that it builds lie in its folder, all others where they are.

    Attributes:
        root: of the lakehouse.
        staging: the folder of the rebuild.
        rebuilt: the tables that it builds.
    """

    staging: LakePath = Path()
    rebuilt: frozenset[str] = frozenset()

    def table(self, table: str) -> LakePath:
        """The Delta table `<layer>.<name>`."""
        return self._of(table).table(table)

    def quarantine(self, table: str) -> LakePath:
        """The Delta table of the rows that `table` refused."""
        return self._of(table).quarantine(table)

    def tombstones(self, table: str, table_id: str) -> LakePath:
        """The Delta table of the deleted keys of a silver table."""
        return self._of(table).tombstones(table, table_id)

    def ops(self, name: str) -> LakePath:
        """One table of the rebuild's own ledger."""
        return LakehousePaths(self.staging).ops(name)

    @property
    def state(self) -> LakePath:
        """The folder of the states that follow from its own ledger."""
        return LakehousePaths(self.staging).state

    @property
    def leases(self) -> LakePath:
        """The folder of its own leases: nobody else writes to what it builds."""
        return LakehousePaths(self.staging).leases

    def _of(self, table: str) -> LakehousePaths:
        return LakehousePaths(self.staging if table in self.rebuilt else self.root)


class EarlierAllowances(DeleteRecords):
    """The deletes by absence that persons have allowed, of a table that is built anew and of the one in use.

    Args:
        staged: the lakehouse as a rebuild sees it.
        live: what was allowed of the tables in use.
    """

    def __init__(self, staged: LakehousePaths, live: DeleteRecords) -> None:
        super().__init__(staged)
        self._live = live
        self._ledger = Ledger(staged)

    def allowed(self, table: str, table_id: str, source_id: str) -> list[Deletes]:
        """The deletes that a person has allowed, also of the table in use, as versions of this very source say it."""
        earlier = self._live.ever_allowed(table)
        return [*super().allowed(table, table_id, source_id), *(self._as_of(source_id, one) for one in earlier)]

    def _as_of(self, source_id: str, allowed: Deletes) -> Deletes:
        """The same of a source that was built anew, where all that was allowed is in its first version."""
        if allowed.source_id == source_id:
            return allowed
        batches = self._ledger.batches(allowed.source, source_id, -1)
        first = batches[0].version if batches else allowed.source_version
        return replace(allowed, source_id=source_id, source_version=first)


@dataclass(frozen=True)
class StagedRecords(OpsTables):
    """What is written down in a rebuild's own ledger.

    Attributes:
        paths: the lakehouse as the rebuild sees it.
        live: the deletes that were allowed of the tables in use.
    """

    live: DeleteRecords

    @cached_property
    def deletes(self) -> DeleteRecords:
        """The deletes by absence that persons have allowed."""
        return EarlierAllowances(self.paths, self.live)


def staged_paths(paths: LakehousePaths, rebuild: str, tables: Iterable[str]) -> StagedPaths:
    """Where a rebuild of tables builds."""
    return StagedPaths(paths.root, paths.rebuilds / rebuild, frozenset(tables), lease_store=paths.lease_store)


def bring_ledger(live: LakehousePaths, staged: StagedPaths, others: Collection[str]) -> None:
    """Give the staged ledger what the lakehouse's own says now of the tables that are read, and not built.

    What it knew of them goes; what it knows of the tables that are built stays.
    """
    for table in others:
        TableStates(staged).forget(table)
    for name in _OF_OTHERS if others else ():
        if is_table(live.ops(name)):
            _copy(live.ops(name), staged.ops(name), sorted(others))
    for name in _BY_NAME:
        # Once: from then on the tables that are built take on columns of their own.
        if is_table(live.ops(name)) and not is_table(staged.ops(name)):
            _copy(live.ops(name), staged.ops(name), sorted(staged.rebuilt))


def _copy(source: LakePath, target: LakePath, tables: Collection[str]) -> None:
    mine = f'"table" IN ({texts(tables)})'
    rows = QueryBuilder().register("stored", open_table(source)).execute(f"SELECT * FROM stored WHERE {mine}")
    if is_table(target):
        open_table(target).delete(mine)
    write_deltalake(str(target), rows, mode="append", partition_by=["table"], storage_options=options_of(target))
    look_again()


def take_over_loads(live: LakehousePaths, staged: StagedPaths, table: str, ids: tuple[str, str], version: int) -> None:
    """Write down what a rebuild has loaded into a table that becomes `version` of the one in use, once for a version.

    Its batches were of another log: they are told apart by their stream, and all of them are in that version. A file
    that could not be loaded stands as it did: so often tried, given up or not.

    Args:
        live: the lakehouse.
        staged: the same as the rebuild sees it.
        table: the table.
        ids: its ids before and after.
        version: the version.
    """
    earlier, table_id = ids
    for name, schema in (("files", FILES), ("batches", BATCHES)):
        mine = OpsTable.of(live, name, schema)
        failed = mine.find(table, table_id=[earlier], event=_OF_FAILURES) if name == "files" else []
        rows = OpsTable.of(staged, name, schema).find(table, table_id=[table_id])
        loaded = [{**row, "stream": _STREAM, "version": row["version"] and version} for row in rows]
        kept = [{**row, "table_id": table_id} for row in failed]
        mine.append_once([*kept, *loaded], f"{table_id}/{table}/{version}")


def remove_staging(staged: StagedPaths) -> None:
    """Delete the folder of a rebuild; nothing is there of what readers use.

    What cannot be deleted now is named in the log, and tried again when the table's next rebuild begins.
    """
    folder = staged.staging
    if isinstance(folder, Path):
        shutil.rmtree(folder, onerror=lambda _, path, error: _left(path, error[1]))
        return
    with translate_storage_errors(str(folder)):
        for page in (
            s3_client().get_paginator("list_objects_v2").paginate(Bucket=folder.bucket, Prefix=f"{folder.key}/")
        ):
            if keys := [{"Key": found["Key"]} for found in page.get("Contents", ())]:
                answer = s3_client().delete_objects(Bucket=folder.bucket, Delete={"Objects": keys, "Quiet": True})
                for error in answer.get("Errors", ()):
                    _left(error["Key"], error.get("Message"))
    look_again()


def _left(path: str, why: object) -> None:
    if not isinstance(why, FileNotFoundError):
        log.warning("%s, of a rebuild that is over, could not be deleted: %s", path, why)
