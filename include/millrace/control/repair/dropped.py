"""Dropped tables: out of the way of readers and runs, and whole, until the time is over for which they are kept.

A dropped table is below `_millrace/dropped/<table id>`, in the same folders as below the root: its versions, its
quarantine and its tombstones. The ledger keeps what it knows of it, by its id. So `undrop` brings exactly it back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

from millrace.contracts.interval import Instant
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.common_settings import DEFAULT_CONFLICTS
from millrace.contracts.strict_model import StrictModel
from millrace.contracts.time_format import MINUTE
from millrace.control.leases.store import lakehouse_leases
from millrace.control.ledger.repairs import UNDROP
from millrace.control.ledger.resolution import table_id
from millrace.control.log.stored_tables import is_table
from millrace.control.log.version_files import LOG
from millrace.control.ops_tables import OpsTables
from millrace.control.storage.folders import delete_folder, move_folder
from millrace.control.storage.objects_on_s3 import object_store
from millrace.control.storage.stored_files import (
    delete_files,
    files_below,
    folders_in,
    is_file,
    names_in,
    read_bytes,
    replace_file,
)
from millrace.errors import LeaseLostError, RepairError, TornLogError, first_line
from millrace.paths import LakehousePaths

_RECORD = "dropped.json"


class DropRecord(StrictModel):
    """What is known of a dropped table.

    Attributes:
        table: the table.
        table_id: its id.
        repair: the id of what was shown.
        at: when it was dropped.
        keep_s: for how many seconds it is kept.
        said_by: who has dropped it.
        why: the reason.
        erased: the request of an erasure that has found somebody in it since; empty without one.
    """

    table: str
    table_id: str
    repair: str
    at: Instant
    keep_s: float
    said_by: str
    why: str
    erased: str = ""

    @property
    def undrop(self) -> str:
        """The id of the repair that brings it back."""
        return hashlib.sha256(f"{self.repair}/{UNDROP}".encode()).hexdigest()[:12]

    @property
    def repairs(self) -> tuple[str, str]:
        """The ids of the repairs that move it."""
        return self.repair, self.undrop


@dataclass(frozen=True)
class DroppedTable:
    """A table that was dropped, or whose drop was interrupted.

    Attributes:
        record: what is known of it.
        paths: the lakehouse.
    """

    record: DropRecord
    paths: LakehousePaths

    @property
    def folder(self) -> LakePath:
        """Where it is."""
        return self.paths.dropped / self.record.table_id

    @property
    def until(self) -> datetime:
        """When maintenance may delete it."""
        return self.record.at + timedelta(seconds=self.record.keep_s)

    @property
    def words(self) -> str:
        """What happened to it, and how it comes back, in one line."""
        record, until = self.record, f"{self.until:{MINUTE}}"
        back = f"until {until} it comes back with: lakehouse repair undrop {record.table}"
        if record.erased:
            back = f"{record.erased} has erased somebody whom it still has: maintenance deletes it after {until}"
        return f"{record.table}: dropped by {record.said_by} at {record.at:{MINUTE}}; {back}"

    @cached_property
    def _moves(self) -> list[tuple[LakePath, LakePath]]:
        """The places of what is beside the table, and of the table itself: in the lakehouse, and of the dropped one."""
        table, table_id, dropped = self.record.table, self.record.table_id, replace(self.paths, root=self.folder)
        return [
            (self.paths.quarantine(table), dropped.quarantine(table)),
            (self.paths.tombstones(table, table_id), dropped.tombstones(table, table_id)),
            (self.paths.table(table), dropped.table(table)),
        ]

    def drop(self) -> None:
        """Move the table out of the way, or go on with it; the caller holds its lease.

        Raises:
            RepairError: another table stands there by now.
        """
        self.require_no_other()
        body = self.record.model_dump_json(indent=1).encode()
        if not object_store(self.folder).put_if_absent(_RECORD, body):
            replace_file(self.folder / _RECORD, body)  # of an interrupted drop, after which the table has changed
        for here, there in reversed(self._moves):
            move_folder(here, there)

    def undrop(self) -> None:
        """Move the table back, or go on with it; the caller holds its lease, and has called `require_free`."""
        for here, there in self._moves:
            move_folder(there, here)
        delete_files(self.folder, [_RECORD])
        delete_folder(self.folder)

    def require_free(self) -> None:
        """Require that the table is there, and nothing else in the places to which it goes back.

        Raises:
            RepairError: it is being deleted, or something else stands there; or somebody was erased since, whom it has.
        """
        self.require_no_other()
        if self.record.erased:
            cause = f"{self.record.table}: {self.record.erased} has erased somebody whom the dropped table still has"
            way_out = f"It never comes back. Maintenance deletes it after {self.until:{MINUTE}}; or delete"
            raise RepairError(cause, f"{way_out} {self.folder} now.")
        table, (path, dropped) = self.record.table, self._moves[-1]
        if not is_table(path) and not is_table(dropped):
            raise RepairError(f"{table}: the dropped table is being deleted", "Its next run builds a new one.")
        for here, there in self._moves:
            # In a bucket an interrupted move leaves equal files in both.
            if isinstance(here, Path) and (other := next(files_below(here), None)) and next(files_below(there), None):
                raise RepairError(f"{table}: {here} has other files by now, such as {other.path}", "Move them away.")

    def require_no_other(self) -> None:
        """Require that no other table stands in its place; raise a RepairError else."""
        if self.has_other:
            table, table_id = self.record.table, self.record.table_id
            cause = f"{table}: another table stands there by now; the dropped one is {self._moves[-1][1]}"
            raise RepairError(cause, f"Drop the other first, then: lakehouse repair undrop {table} --id {table_id}")

    @property
    def has_other(self) -> bool:
        """Whether another table stands in its place."""
        here, there = self._moves[-1]
        try:
            return is_table(here) and table_id(here) != self.record.table_id
        except TornLogError:  # in a bucket, an interrupted move leaves a part of the log, which is all there as well
            return not {*names_in(here / LOG)} <= {*names_in(there / LOG)}

    def keep_away(self, request: str) -> None:
        """Let it never come back: an erasure has found somebody in it. The caller holds its lease."""
        record = self.record.model_copy(update={"erased": request})
        replace_file(self.folder / _RECORD, record.model_dump_json(indent=1).encode())

    def delete(self) -> None:
        """Delete it for good; the record goes last."""
        for _, there in reversed(self._moves):
            delete_folder(there)
        delete_files(self.folder, [_RECORD])
        delete_folder(self.folder)


def dropped_tables(paths: LakehousePaths) -> list[DroppedTable]:
    """Return the dropped tables that are still there, the last dropped first."""
    folders = [paths.dropped / name for name in folders_in(paths.dropped)]
    texts = [read_bytes(folder / _RECORD) for folder in folders if is_file(folder / _RECORD)]
    records = map(DropRecord.model_validate_json, texts)
    return [DroppedTable(record, paths) for record in sorted(records, key=lambda each: each.at, reverse=True)]


def delete_expired(ops: OpsTables, run_id: str, now: datetime) -> Iterator[str]:
    """Delete the dropped tables whose time is over and that nobody holds, and yield a line for each.

    One that somebody brings back just then is left to the next run. One whose drop or undrop was interrupted stays
    until that has gone on, if it can: a part of it may be elsewhere.
    """
    for dropped in dropped_tables(ops.paths):
        table, at = dropped.record.table, f"{dropped.record.at:{MINUTE}}"
        if dropped.until > now:
            continue
        try:
            with lakehouse_leases(ops.paths, run_id, DEFAULT_CONFLICTS.wait_for_lease).table(table):
                record, reasons = dropped.record, [hold.words for hold in ops.holds.on(table)]
                if not record.erased and not dropped.has_other:
                    open_ = ops.repairs.open([table])
                    reasons += [each.interruption for each in open_ if each.repair.id in record.repairs]
                if reasons:
                    yield f"{table}: the table that was dropped at {at} stays: {reasons[0]}"
                elif dropped in dropped_tables(ops.paths):
                    dropped.delete()
                    yield f"{table}: the table that was dropped at {at} is deleted"
        except LeaseLostError as error:
            yield f"{table}: the table that was dropped at {at} is left to the next run: {first_line(error)}"
