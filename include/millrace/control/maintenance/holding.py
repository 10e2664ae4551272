"""Hold tables, so that all their versions stay, and release them.

Maintenance deletes nothing of a held table. Delta would still clean its log, without which no old version can be read:
the table itself says that it must not.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from deltalake import CommitProperties, PostCommitHookProperties
from deltalake.exceptions import CommitFailedError
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.common_settings import DEFAULT_CONFLICTS
from millrace.control.leases.store import lakehouse_leases
from millrace.control.ledger.holds import HoldEvent
from millrace.control.log.batch import new_token
from millrace.control.log.delta_log import MAINTENANCE_KEY
from millrace.control.log.stored_tables import identity, is_table, open_table
from millrace.control.maintenance.health import beside_folders
from millrace.control.ops_tables import OpsTables

_CLEANS_LOG = "delta.enableExpiredLogCleanup"

KEEPS_LOG = {_CLEANS_LOG: "false"}
"""The property of a table whose log is not cleaned."""


def hold_tables(name: str, tables: Sequence[str], *, said_by: str, why: str, run_id: str, ops: OpsTables) -> None:
    """Hold tables under a name; a table that has this hold already keeps it as it is.

    When this returns, no VACUUM of them is running, and none begins.

    Raises:
        LeaseLostError: a writer or maintenance held the lease of a table for too long. The holds are recorded, but the
            log of that table may be cleaned until the same call ends well.
    """
    new = [table for table in tables if all(hold.name != name for hold in ops.holds.on(table))]
    ops.holds.record(HoldEvent.SET, name, new, said_by=said_by, why=why)
    for table in tables:
        _set_log_cleaning(_folders(table, ops), table, ops, run_id, cleans=False)


def keep_log(table: str, ops: OpsTables, run_id: str) -> None:
    """Keep the log of a table that is held, and of those beside it, where it would be cleaned.

    That is so if one of them was built after the hold was set, or restored: an old version has its old properties.

    Raises:
        LeaseLostError: a writer held the lease of the table for too long.
    """
    held = _folders(table, ops) if ops.holds.on(table) else ()
    if folders := [folder for folder in held if _cleans_log(folder)]:
        _set_log_cleaning(folders, table, ops, run_id, cleans=False)


def release_hold(name: str, *, said_by: str, why: str, run_id: str, ops: OpsTables) -> list[str]:
    """Release all tables of a hold, and return them; a table with another hold stays held.

    Raises:
        LeaseLostError: a writer or maintenance held the lease of a table for too long. It is released, but keeps its
            whole log.
    """
    tables = [hold.table for hold in ops.holds.active() if hold.name == name]
    ops.holds.record(HoldEvent.RELEASED, name, tables, said_by=said_by, why=why)
    for table in tables:
        if not ops.holds.on(table):
            _set_log_cleaning(_folders(table, ops), table, ops, run_id, cleans=True)
    return tables


def _folders(table: str, ops: OpsTables) -> list[LakePath]:
    """Return the folders of a table and of those beside it, as far as they exist."""
    path = ops.paths.table(table)
    if not is_table(path):
        return []
    beside = beside_folders(table, identity(open_table(path, without_files=True)), ops.paths).values()
    return [path, *filter(is_table, beside)]


def _cleans_log(path: LakePath) -> bool:
    return open_table(path, without_files=True).metadata().configuration.get(_CLEANS_LOG, "true") != "false"


def _set_log_cleaning(folders: Sequence[LakePath], table: str, ops: OpsTables, run_id: str, *, cleans: bool) -> None:
    with lakehouse_leases(ops.paths, run_id, DEFAULT_CONFLICTS.wait_for_lease).table(table):
        for folder in folders:
            if _cleans_log(folder) is not cleans:
                _set_property(folder, str(cleans).lower(), run_id)


# A batch of another stream of the table may commit in between.
@retry(
    retry=retry_if_exception_type(CommitFailedError),
    stop=stop_after_attempt(8),
    wait=wait_random_exponential(multiplier=0.05, max=1),
    reraise=True,
)
def _set_property(path: LakePath, value: str, run_id: str) -> None:
    mark = json.dumps({MAINTENANCE_KEY: {"run_id": run_id, "token": new_token()}})
    open_table(path, without_files=True).alter.set_table_properties(
        {_CLEANS_LOG: value},
        commit_properties=CommitProperties(custom_metadata={"userMetadata": mark}),
        post_commithook_properties=PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
    )
