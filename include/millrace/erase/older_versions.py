"""Delete what only the versions before an erasure need, before the retention of the table has passed.

VACUUM would delete, or keep, by the age of files alone. This deletes those that were there when the subjects were
erased, and no later ones: they may belong to a commit that is still to come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial
from urllib.parse import unquote

from millrace.catalog import Catalog
from millrace.clock import utc_now
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.duration import RETENTION
from millrace.contracts.spec.table_spec import AnySpec
from millrace.contracts.time_format import MINUTE
from millrace.control.leases.store import lakehouse_leases
from millrace.control.ledger.erasures import ErasedTable
from millrace.control.log.delta_log import commit_time, commit_versions, commits_after
from millrace.control.log.stored_tables import logged_files, open_table
from millrace.control.maintenance.health import TableHealth, beside_folders, table_health
from millrace.control.maintenance.log_files import clean_log, log_health, needed_version
from millrace.control.maintenance.old_files import LOG_RETENTION_PROPERTY, OldFiles, stated_retention
from millrace.control.ops_tables import OpsTables
from millrace.control.storage.folders import delete_remains
from millrace.control.storage.stored_files import delete_files, files_below
from millrace.errors import NotReadyError


def delete_older_versions(spec: AnySpec, erased: ErasedTable, catalog: Catalog, ops: OpsTables, run_id: str) -> None:
    """Delete the files, and the commits, that only versions before an erasure need, under the lease of the table.

    Raises:
        NotReadyError: a hold or a reader needs an older version.
        LeaseLostError: a run that writes the table did not end in time.
    """
    with lakehouse_leases(ops.paths, run_id, spec.conflicts.wait_for_lease).table(spec.table):
        health = table_health(spec, catalog, ops, utc_now())
        if health is None:
            return
        _require_unread(health, erased)
        # No row has changed between the version of a reader and that of the erasure.
        readers = [replace(each, version=max(each.version, erased.version)) for each in health.readers]
        path, needed = ops.paths.table(spec.table), cache(partial(needed_version, spec, ops, readers))
        delete_files(path, files_before(path, health.old, erased))
        delete_remains(path)
        _clean(path, needed)
        folders = beside_folders(spec.table, health.maintained.table_id, ops.paths)
        for beside in health.beside:
            delete_files(folders[beside.name], older_files(beside.old, erased.recorded_at))
            delete_remains(folders[beside.name])
            _clean(folders[beside.name], open_table(folders[beside.name]).version)


def _require_unread(health: TableHealth, erased: ErasedTable) -> None:
    table, at = health.table, erased.recorded_at
    if health.refusals and (health.holds or health.has_lost_hold):
        raise NotReadyError(f"{table}: older versions stay: {'; '.join(health.refusals)}", health.way_out)
    for reader in health.readers:
        if at and reader.version < erased.version and reader.since and reader.since <= at:
            cause = f"{table}: older versions stay: {reader} has not read version {erased.version} yet"
            raise NotReadyError(cause, "Run what is behind, then the same command again.")
    for name, length in health.outside.items():
        if at and (until := at + RETENTION.parse(length)) > utc_now():
            cause = f"{table}: older versions stay: {name}, by the spec, may read one until {until:{MINUTE}}"
            raise NotReadyError(cause, "Run the same command again then.")


def files_before(path: LakePath, old: OldFiles, erased: ErasedTable) -> list[str]:
    """Return the files of a table that only versions before an erasure need, and those that no version names.

    A later version may have replaced that of the erasure before this was recorded; readers may still be on it.

    Args:
        path: the folder of the table.
        old: its files that the newest version does not need.
        erased: the erasure.
    """
    # Once the log is cleaned, nobody can read a version below its first one.
    first = min(commit_versions(path, erased.version - 1))
    added = (name for commit in commits_after(path, first) for name in commit.added)
    names = set(map(unquote, (*logged_files(open_table(path, first))["path"].to_pylist(), *added)))
    removed = [file.path for file in (*old.kept, *old.due) if file.is_removed]
    # The log has times in milliseconds, cut off.
    unnamed = older_files(old, commit_time(path, first) + timedelta(milliseconds=1))
    return [name for name in dict.fromkeys((*removed, *unnamed)) if name not in names]


def older_files(old: OldFiles, at: datetime | None) -> list[str]:
    """Return the files that were there, and not needed any more, at a time."""
    return [file.path for file in (*old.kept, *old.due) if at and file.due - old.retention <= at]


def _clean(path: LakePath, needed: Callable[[], int]) -> None:
    """Clean a log up to its last checkpoint, as if the retention of the log had passed."""
    delta = open_table(path)
    kept_for = stated_retention(delta.metadata().configuration, str(path), LOG_RETENTION_PROPERTY)
    clean_log(path, log_health(delta, path, list(files_below(path)), needed, utc_now() + kept_for + timedelta(days=1)))
