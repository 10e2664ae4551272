"""Who won a race for a table: told by the winner's own commit, never by who happened to run at that time."""

from __future__ import annotations

import json
import re
from typing import Any

from include.contracts.job.contention import LostRace
from include.contracts.lake_path import LakePath
from include.control.log.delta_log import Commit, commits_after, read_commit

_VERSION = re.compile(r"^\[DELTA_CONCURRENT_\S+\] .* \(?committed at version (\d+)[.)]", re.MULTILINE)
_QUOTED = re.compile(r"^Conflicting commit: (\{.*\})", re.MULTILINE)
"""Delta's conflicts of files name the winner's version, the others quote its `commitInfo` (DeltaErrors.scala of
delta-io/delta)."""


def race_lost(conflict: str, message: str, table: LakePath, after: int) -> LostRace:
    """Which commit a writer lost to.

    Args:
        conflict: Delta's class of the conflict.
        message: of the error that Delta has raised.
        table: the folder of the table.
        after: the version that the writer knew; the winner is above it.
    """
    winner = _winner(message, table, after)
    return race_lost_to(conflict, winner) if winner else LostRace(conflict=conflict)


def _winner(message: str, table: LakePath, after: int) -> Commit | None:
    if named := _VERSION.search(message):
        return read_commit(table, int(named[1]))
    if found := _QUOTED.search(message):
        quoted = json.loads(found[1])
        return next((commit for commit in commits_after(table, after) if _is_quoted(commit, quoted)), None)
    return None


def _is_quoted(commit: Commit, quoted: dict[str, Any]) -> bool:
    """By Delta's id of the commit, which Spark writes and delta-rs does not."""
    if quoted.get("txnId"):
        return bool(commit.txn_id == quoted["txnId"])
    return (commit.operation, round(commit.at.timestamp() * 1000)) == (quoted["operation"], quoted["timestamp"])


def race_lost_to(conflict: str, winner: Commit) -> LostRace:
    """That it was lost to this commit."""
    return LostRace(conflict=conflict, operation=winner.operation, run_id=winner.run_id, version=winner.version)
