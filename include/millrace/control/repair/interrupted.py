"""Repairs that were decided, and interrupted before they were complete; listings name them, so this loads little."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from millrace.control.ledger.repairs import DROP, UNDROP, DecidedRepair
from millrace.control.log.batch import Intent, Winner
from millrace.control.log.delta_log import read_commit
from millrace.control.ops_tables import OpsTables
from millrace.control.repair.dropped import dropped_tables


def interrupted_repairs(tables: Iterable[str], ops: OpsTables) -> list[str]:
    """Return a line for each repair of some tables that was decided, and then interrupted: it can go on."""
    open_ = interrupted(tables, ops)
    return [f"{each.table}: {each.interruption}; it goes on with: {each.command}" for each in open_]


def interrupted(tables: Iterable[str], ops: OpsTables) -> list[DecidedRepair]:
    """Return the repairs of some tables that were decided, and then interrupted."""
    return [decided for decided in ops.repairs.open(tables) if _can_go_on(decided, ops)]


def _can_go_on(decided: DecidedRepair, ops: OpsTables) -> bool:
    if decided.action in (DROP, UNDROP):
        of_repair = (each for each in dropped_tables(ops.paths) if decided.repair.id in each.record.repairs)
        return any(not each.has_other for each in of_repair)
    commit = read_commit(ops.paths.table(decided.table), decided.version + 1)
    if commit and commit.metadata.get("token") != repair_token(decided.table, decided.repair.id):
        return False  # another commit came first, so that nothing was repaired
    # The next run of the table may have ended it.
    return not (commit and ops.ledger.closed_rows(Winner(Intent.model_validate(commit.metadata), commit.version)))


def repair_token(table: str, repair: str) -> str:
    """Return the token of the batch of a repair; it is the same for everybody who resumes it."""
    return hashlib.sha256(f"{repair}/{table}".encode()).hexdigest()[:32]
