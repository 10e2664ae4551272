"""Hold tables, so that all their versions stay, and release them; keep the logs of held tables, and for readers.

Maintenance deletes nothing of a table that is held, or whose readers are in danger. Delta would still clean its log,
without which no old version can be read: the table itself says that it must not, and for whom. So the table also knows
that it is held if `ops.holds` does not know it any more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence, Set

from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.common_settings import DEFAULT_CONFLICTS
from millrace.control.changes.table_properties import (
    HOLD_NAMES,
    KEPT_BY_OTHERS,
    LOG_CLEANING,
    LOG_KEPT_FOR,
    KeptFor,
    cleans_log,
    log_kept_for,
)
from millrace.control.leases.leases import Leases
from millrace.control.leases.store import lakehouse_leases
from millrace.control.ledger.holds import HoldEvent
from millrace.control.log.batch import Winner, new_token
from millrace.control.log.delta_log import MAINTENANCE_KEY, latest_version
from millrace.control.log.property_commits import set_properties
from millrace.control.log.stored_tables import identity, is_table, open_table
from millrace.control.maintenance.health import TableHealth, beside_folders
from millrace.control.ops_tables import OpsTables


def hold_tables(name: str, tables: Sequence[str], *, said_by: str, why: str, run_id: str, ops: OpsTables) -> None:
    """Hold tables under a name; a table that has this hold already keeps it as it is.

    When this returns, no VACUUM of them is running, and none begins.

    Raises:
        LeaseLostError: a writer or maintenance held the lease of a table for too long. The holds are recorded, but the
            log of that table may be cleaned until the same call ends well.
    """

    def record(those: Sequence[str]) -> None:
        new = [table for table in those if name not in _holds_on(table, ops)]
        ops.holds.record(HoldEvent.SET, name, new, said_by=said_by, why=why)

    record(tables)
    for table in tables:
        with _leases(ops, run_id).table(table):
            record([table])  # again, if it was released since
            _keep_for(KeptFor.HOLDS, table, ops, run_id)


def release_hold(name: str, *, said_by: str, why: str, run_id: str, ops: OpsTables) -> list[str]:
    """Release all tables of a hold, and return them; a table with another hold stays held, also by its own word.

    The logs are kept until the next maintenance: it knows whether readers still need them.

    Raises:
        LeaseLostError: a writer or maintenance held the lease of a table for too long. It stays held, as do those after
            it, until the same call ends well.
    """
    tables = [hold.table for hold in ops.holds.active() if hold.name == name]
    for table in tables:
        with _leases(ops, run_id).table(table):
            if names := _names_on(table, ops) - {name}:
                _keep_for(KeptFor.HOLDS, table, ops, run_id, names)
            elif _is_held_by_its_word(table, ops):
                _keep_for(KeptFor.READERS, table, ops, run_id)
            ops.holds.record(HoldEvent.RELEASED, name, [table], said_by=said_by, why=why)
    return tables


def keep_log(health: TableHealth, ops: OpsTables, run_id: str) -> None:
    """Keep the log of a table, and of those beside it, while a hold or a reader in danger needs old versions.

    Else, let Delta clean it again. A log that somebody else keeps stays as it is, and so does that of a table that is
    held by its own word alone.

    Raises:
        LeaseLostError: a writer held the lease of the table for too long.
    """
    of_readers = KeptFor.READERS if health.in_danger else KeptFor.NOBODY
    wanted = KeptFor.HOLDS if health.holds else of_readers
    logs = health.logs.values()
    if health.has_lost_hold or not any(_differs(log.kept_for, wanted, is_cleaned=log.is_cleaned) for log in logs):
        return
    with _leases(ops, run_id).table(health.table):
        _keep_for(KeptFor.HOLDS if _holds_on(health.table, ops) else of_readers, health.table, ops, run_id)


def keep_held_log(restore: Winner, ops: OpsTables, run_id: str) -> None:
    """Keep the log of a table as it was before a restore, which brings the properties of the earlier version back, too.

    The caller holds the lease of the table.
    """
    table, version = restore.intent.table, restore.version
    path = ops.paths.table(table)
    if latest_version(path) == version:  # else somebody may have set them since
        before, now = (_of_log(_stored_properties(path, at)) for at in (version - 1, version))
        if now != before:
            _set(path, before, run_id)
    if ops.holds.on(table):
        _keep_for(KeptFor.HOLDS, table, ops, run_id)


def lost_holds(tables: Iterable[str], ops: OpsTables) -> list[str]:
    """Return those of some tables that say themselves that they are held, though `ops.holds` knows of no hold."""
    return [table for table in tables if not ops.holds.on(table) and _is_held_by_its_word(table, ops)]


def kept_log(properties: Mapping[str, str], *, is_held: bool) -> dict[str, str]:
    """Return what stays of a table's properties when it is replaced: whether its log is kept, and for whom."""
    kept = {key: properties[key] for key in _UNSET if key in properties}
    return {**kept, **_properties(KeptFor.HOLDS, properties, _names_in(properties))} if is_held else kept


def _holds_on(table: str, ops: OpsTables) -> set[str]:
    return {hold.name for hold in ops.holds.on(table)}


def _names_on(table: str, ops: OpsTables) -> set[str]:
    """Return the names of the holds on a table, by `ops.holds` and by its own word."""
    path = ops.paths.table(table)
    return _holds_on(table, ops) | (_names_in(_stored_properties(path)) if is_table(path) else set())


def _is_held_by_its_word(table: str, ops: OpsTables) -> bool:
    path = ops.paths.table(table)
    return is_table(path) and log_kept_for(_stored_properties(path)) is KeptFor.HOLDS


def _leases(ops: OpsTables, run_id: str) -> Leases:
    return lakehouse_leases(ops.paths, run_id, DEFAULT_CONFLICTS.wait_for_lease)


def _keep_for(wanted: KeptFor, table: str, ops: OpsTables, run_id: str, holds: Set[str] | None = None) -> None:
    """Let a table, and those beside it, say for whom their logs are kept; the caller holds the lease of the table.

    Args:
        wanted: for whom.
        table: the table.
        ops: the lakehouse.
        run_id: the run that sets it.
        holds: the names of its holds; None for all that are known.
    """
    path = ops.paths.table(table)
    if not is_table(path):
        return
    names = (_names_on(table, ops) if holds is None else holds) if wanted is KeptFor.HOLDS else set()
    beside = beside_folders(table, identity(open_table(path, without_files=True)), ops.paths).values()
    for folder in (path, *filter(is_table, beside)):
        stored = _stored_properties(folder)
        has_others = wanted is KeptFor.HOLDS and _names_in(stored) != names
        if has_others or _differs(log_kept_for(stored), wanted, is_cleaned=cleans_log(stored)):
            _set(folder, _properties(wanted, stored, names), run_id)


def _set(folder: LakePath, properties: Mapping[str, str], run_id: str) -> None:
    set_properties(folder, properties, json.dumps({MAINTENANCE_KEY: {"run_id": run_id, "token": new_token()}}))


def _stored_properties(path: LakePath, version: int | None = None) -> dict[str, str]:
    return open_table(path, version, without_files=True).metadata().configuration


_UNSET = {LOG_CLEANING: "true", LOG_KEPT_FOR: KeptFor.NOBODY.value, HOLD_NAMES: "[]", KEPT_BY_OTHERS: "false"}
"""The properties that say for whom a log is kept -> what they mean where they are not set."""


def _of_log(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: properties.get(key, unset) for key, unset in _UNSET.items()}


def _names_in(properties: Mapping[str, str]) -> set[str]:
    return set(json.loads(properties.get(HOLD_NAMES, "[]")))


def _properties(wanted: KeptFor, stored: Mapping[str, str], holds: Set[str]) -> dict[str, str]:
    """Return the properties by which a log is kept for somebody; those that are not set, and need not be, are left out.

    A log that somebody else had kept before a hold is kept after it as well.
    """
    is_own = log_kept_for(stored) is KeptFor.NOBODY or stored.get(KEPT_BY_OTHERS) == "true"
    by_others = is_own and not cleans_log(stored)
    new = {
        LOG_CLEANING: str(wanted is KeptFor.NOBODY and not by_others).lower(),
        LOG_KEPT_FOR: wanted.value,
        HOLD_NAMES: json.dumps(sorted(holds)),
        KEPT_BY_OTHERS: str(by_others and wanted is not KeptFor.NOBODY).lower(),
    }
    needed = {LOG_CLEANING, LOG_KEPT_FOR}
    return {key: value for key, value in new.items() if key in stored.keys() | needed or value != _UNSET[key]}


def _differs(stored: KeptFor, wanted: KeptFor, *, is_cleaned: bool) -> bool:
    """Return whether a log has to be kept for somebody else than it is; only a hold takes over one of other people."""
    if stored is wanted:
        return is_cleaned and wanted is not KeptFor.NOBODY
    return is_cleaned or stored is not KeptFor.NOBODY or wanted is KeptFor.HOLDS
