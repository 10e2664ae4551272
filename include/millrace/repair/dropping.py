"""Drop a table exactly as its dry run has shown it, and bring it back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from shlex import quote
from typing import Any

from millrace.catalog import Catalog
from millrace.clock import utc_now
from millrace.contracts.counted import counted, in_bytes
from millrace.contracts.time_format import MINUTE
from millrace.control.leases.leases import Leases
from millrace.control.ledger.repairs import DROP, UNDROP, DecidedRepair, RepairEvent
from millrace.control.ledger.resolution import table_id
from millrace.control.log.batch import Repair
from millrace.control.log.delta_log import commit_versions, latest_version
from millrace.control.log.stored_tables import is_table
from millrace.control.maintenance.holding import lost_holds
from millrace.control.maintenance.old_files import LEAST_RETENTION, stated_retention
from millrace.control.maintenance.retention import length_of
from millrace.control.ops_tables import OpsTables
from millrace.control.planning.stream_positions import stream_position
from millrace.control.repair.dropped import DroppedTable, DropRecord, dropped_tables
from millrace.control.repair.restoring import secondary_tables
from millrace.control.storage.stored_files import files_below
from millrace.errors import RepairError, UnknownNameError
from millrace.reading.certified import require_table
from millrace.reading.stored_version import StoredVersion


@dataclass(frozen=True)
class DropPlan:
    """What a drop would take away. Its id is the digest of all of it.

    Attributes:
        table: the table.
        table_id: its id.
        newest: its newest version.
        versions: the number of its versions.
        certified: the version of readers.
        rows: the rows of the newest version.
        files: the number of all its files, also of old versions, of the log, and of what is beside it.
        size: their bytes.
        beside: name of the quarantine and of the tombstones -> rows.
        keep_s: for how many seconds it can be brought back.
        came_back: how often it was dropped and brought back before, so that each drop has an id of its own.
    """

    table: str
    table_id: str
    newest: int
    versions: int
    certified: int | None
    rows: int
    files: int
    size: int
    beside: dict[str, int]
    keep_s: float
    came_back: int

    @property
    def id(self) -> str:
        """The digest of all of it."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]

    @property
    def command(self) -> str:
        """The command that does exactly this, without the reason."""
        return f"lakehouse repair drop {self.table} --execute {self.id}"

    @property
    def facts(self) -> dict[str, Any]:
        """All of it for other programs, with the id and the command."""
        return {"id": self.id, "command": self.command, **asdict(self)}

    @property
    def lines(self) -> Iterator[str]:
        """The plan in words."""
        yield f"{self.table}: the table would be dropped. Nothing was written."
        versions = counted(self.versions, "version")
        files = f"{counted(self.files, 'file')}, {in_bytes(self.size)}"
        yield f"Rows: {self.rows:,} in version {self.newest}; {versions} in {files}"
        yield from (f"{name}: {counted(rows, 'row')}" for name, rows in self.beside.items())
        certified = "no version" if self.certified is None else f"version {self.certified}"
        yield f"Readers: {certified} now, no table after. No table of a spec reads it."
        keep = length_of(timedelta(seconds=self.keep_s))
        yield f"For {keep} it comes back with: lakehouse repair undrop {self.table}. Then maintenance deletes it."


def plan_drop(table: str, catalog: Catalog, ops: OpsTables) -> DropPlan:
    """Return what a drop of a table would take away; nothing is written.

    Raises:
        UnknownNameError: there is no such table.
        RepairError: a spec declares it or reads it, a hold or a rebuild needs it; the message says what helps.
    """
    require_table(table, ops.paths)
    _require_unused(table, catalog, ops)
    if lost_holds([table], ops):
        cause = f"{table} itself says that it is held, but ops.holds has no such hold"
        raise RepairError(cause, "Restore ops/holds from a backup, or set the hold again, and release it.")
    path = ops.paths.table(table)
    stored, folders = StoredVersion(path, latest_version(path)), secondary_tables(table, table_id(path), ops.paths)
    files = [file for folder in (path, *folders.values()) for file in files_below(folder)]
    retention = stated_retention(stored.delta.metadata().configuration, str(path))
    return DropPlan(
        table=table,
        table_id=table_id(path),
        newest=stored.version,
        versions=len(commit_versions(path)),
        certified=ops.gates.certified(table),
        rows=stored.count_rows(),
        files=len(files),
        size=sum(file.size for file in files),
        beside={name: StoredVersion(at, latest_version(at)).count_rows() for name, at in folders.items()},
        keep_s=max(retention, LEAST_RETENTION).total_seconds(),
        came_back=ops.repairs.count_done(table, UNDROP),
    )


def drop(table: str, decided: Repair, run_id: str, catalog: Catalog, ops: OpsTables, leases: Leases) -> DroppedTable:
    """Drop a table as the plan with the id of the decision has shown it, or go on where that was interrupted.

    Raises:
        RepairError: no reason is stated; the drop would do something else than what was shown; or as `plan_drop`.
        UnknownNameError: there is no such table.
        LeaseLostError: a run that writes the table did not end in time.
    """
    if not decided.why.strip():
        raise RepairError(f"{table}: why is it dropped?", "State the reason, for those who look at it later.")
    with leases.table(table):
        begun = (each for each in dropped_tables(ops.paths) if each.record.repair == decided.id)
        if (dropped := next(begun, None)) is None:
            dropped = _begin(table, decided, run_id, catalog, ops)
        elif is_table(ops.paths.table(table)):
            _require_as_shown(dropped, catalog, ops)
        dropped.drop()
        if known := ops.repairs.decided(table, decided.id):
            ops.repairs.record(RepairEvent.DONE, known, dropped.record.table_id, run_id)
    ops.gates.publish(table)
    return dropped


def undrop(
    table: str, said_by: str, why: str, run_id: str, ops: OpsTables, leases: Leases, *, dropped_id: str = ""
) -> None:
    """Bring a dropped table back as it was, or go on where that was interrupted.

    Args:
        table: the table.
        said_by: who brings it back.
        why: the reason.
        run_id: the run that does it.
        ops: the lakehouse.
        leases: the leases.
        dropped_id: the id of the table, which is needed if several of this name were dropped.

    Raises:
        UnknownNameError: no such table was dropped, or it is deleted.
        RepairError: no reason is stated; several of this name were dropped; or as `DroppedTable.require_free`.
        LeaseLostError: a run that writes the table did not end in time.
    """
    if not why.strip():
        raise RepairError(f"{table}: why is it brought back?", "State the reason, for those who look at it later.")
    with leases.table(table):
        begun: DecidedRepair | None
        if (dropped := _only_dropped(table, dropped_id, ops)) is not None:
            dropped.require_free()
            begun = _decide_undrop(dropped, said_by, why, run_id, ops)
            dropped.undrop()
        elif (begun := _moved_back(table, ops)) is None:
            raise UnknownNameError(f"{table} was not dropped, or is deleted by now", "Its next run builds a new one.")
        ops.repairs.record(RepairEvent.DONE, begun, table_id(ops.paths.table(table)), run_id)
    ops.gates.publish(table)


def _only_dropped(table: str, dropped_id: str, ops: OpsTables) -> DroppedTable | None:
    """Return the dropped table of a name, and of an id if one is stated; None without any."""
    records = [each for each in dropped_tables(ops.paths) if each.record.table == table]
    named = [each for each in records if dropped_id in ("", each.record.table_id)]
    if len(named) > 1 or (dropped_id and records and not named):
        known = "; ".join(f"--id {each.record.table_id} (dropped at {each.record.at:{MINUTE}})" for each in records)
        cause = (
            f"{table} was dropped {len(named)} times" if named else f"{table} was not dropped with the id {dropped_id}"
        )
        raise RepairError(cause, f"Say which one: {known}")
    return next(iter(named), None)


def _decide_undrop(dropped: DroppedTable, said_by: str, why: str, run_id: str, ops: OpsTables) -> DecidedRepair:
    record = dropped.record
    command = f"lakehouse repair undrop {record.table} --id {record.table_id}"
    shown = {"command": command, "dropped": record.model_dump(mode="json")}
    known = ops.repairs.decided(record.table, record.repair)
    decided = Repair(id=record.undrop, said_by=said_by, why=why)
    back = DecidedRepair(record.table, UNDROP, decided, json.dumps(shown), known.version if known else 0)
    ops.repairs.record(RepairEvent.DECIDED, back, record.table_id, run_id)
    return back


def _moved_back(table: str, ops: OpsTables) -> DecidedRepair | None:
    """Return the undrop that was interrupted right at its end: the table is back, and only the event is missing."""
    path = ops.paths.table(table)
    begun = [each for each in ops.repairs.open([table]) if each.action == UNDROP]
    if not begun or not is_table(path):
        return None
    back = table_id(path)
    return next((each for each in begun if json.loads(each.shown)["dropped"]["table_id"] == back), None)


def _begin(table: str, decided: Repair, run_id: str, catalog: Catalog, ops: OpsTables) -> DroppedTable:
    plan = plan_drop(table, catalog, ops)
    if plan.id != decided.id:
        raise _changed(table, decided.id, f"now it is {plan.id}")
    record = DecidedRepair(table, DROP, decided, json.dumps(plan.facts), plan.newest)
    ops.repairs.record(RepairEvent.DECIDED, record, plan.table_id, run_id)
    return DroppedTable(
        DropRecord(
            table=table,
            table_id=plan.table_id,
            repair=decided.id,
            at=utc_now(),
            keep_s=plan.keep_s,
            said_by=decided.said_by,
            why=decided.why,
        ),
        ops.paths,
    )


def _require_as_shown(begun: DroppedTable, catalog: Catalog, ops: OpsTables) -> None:
    """Require that a table, which an interrupted drop has not moved yet, is the one that was shown, and not needed."""
    table, repair = begun.record.table, begun.record.repair
    begun.require_no_other()
    _require_unused(table, catalog, ops)
    decided, newest = ops.repairs.decided(table, repair), latest_version(ops.paths.table(table))
    if decided and decided.version != newest:
        raise _changed(table, repair, f"version {newest} is its newest now, not {decided.version}")


def _changed(table: str, repair: str, how: str) -> RepairError:
    cause = f"{table}: the drop would do something else than what {repair} has shown; {how}"
    return RepairError(cause, "The table has changed since. Look at it again, without --execute.")


def _require_unused(table: str, catalog: Catalog, ops: OpsTables) -> None:
    """Require that nothing declares, reads, holds or rebuilds a table."""
    if table in catalog.tables:
        cause = f"{table}: its spec would build it again with its next run"
        raise RepairError(cause, f"Remove the spec first. To build the table anew: lakehouse rebuild {table}")
    if readers := _readers(table, catalog, ops):
        cause = f"{table}: {', '.join(readers)} {'reads' if len(readers) == 1 else 'read'} it"
        raise RepairError(cause, "Remove it from their sources, and run them or drop them first.")
    if holds := ops.holds.on(table):
        release = f"lakehouse hold release {quote(holds[0].name)}"
        raise RepairError(f"{table}: {holds[0].words}", f"Release the hold first: {release}")
    for rebuild in ops.rebuilds.active([table, *catalog.tables]):
        if table in rebuild.tables:
            cause = f"{table}: a rebuild of {rebuild.table} is in progress"
            raise RepairError(cause, f"Finish it, or give it up: lakehouse rebuild {rebuild.table} --cancel")


def _readers(table: str, catalog: Catalog, ops: OpsTables) -> Sequence[str]:
    """Return the tables whose specs read a table, also in a check, or whose last batches have read it."""
    specs = [*catalog.specs.values(), *catalog.well_formed.values()]  # a rule with the table's name is wrong by now
    readers = {spec.table for spec in specs if table in spec.named_tables}
    readers.update(spec.table for spec in catalog.invalid.values() if table in spec.source_tables)
    for spec in catalog.invalid.values():
        if spec.table not in readers and is_table(ops.paths.table(spec.table)):
            position = stream_position(spec, ops.paths, ops.ledger)
            if position and table in {*position.last_sources.ranges, *position.last_sources.references}:
                readers.add(spec.table)
    return sorted(readers)
