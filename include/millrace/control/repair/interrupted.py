"""Restores that were decided, and interrupted before they were complete; listings name them, so this loads little."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from millrace.control.log.batch import Intent, Winner
from millrace.control.log.delta_log import read_commit
from millrace.control.ops_tables import OpsTables


def interrupted_restores(tables: Iterable[str], ops: OpsTables) -> list[str]:
    """Return a line for each restore of some tables that was decided, and then interrupted: it can go on."""
    lines = list[str]()
    for decided in ops.repairs.open(tables):
        commit = read_commit(ops.paths.table(decided.table), decided.version + 1)
        if commit and commit.metadata.get("token") != restore_token(decided.table, decided.repair.id):
            continue  # another commit came first, so that nothing was restored
        if commit and ops.ledger.closed_rows(Winner(Intent.model_validate(commit.metadata), commit.version)):
            continue  # the next run of the table has ended it
        command = json.loads(decided.shown)["command"]
        said = f"a restore that {decided.repair.said_by} decided was interrupted"
        lines.append(f"{decided.table}: {said}; it goes on with: {command} --why ...")
    return lines


def restore_token(table: str, repair: str) -> str:
    """Return the token of the batch of a repair; it is the same for everybody who resumes it."""
    return hashlib.sha256(f"{repair}/{table}".encode()).hexdigest()[:32]
