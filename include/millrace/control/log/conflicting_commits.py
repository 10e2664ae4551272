"""Find the winner of a race for a table in the log: the commit that Delta's error names."""

from __future__ import annotations

import json
import re
from typing import Any

from millrace.contracts.job.contention import LostRace
from millrace.contracts.lake_path import LakePath
from millrace.control.log.delta_log import Commit, commits_after, read_commit

_VERSION = re.compile(r"^\[DELTA_CONCURRENT_\S+\] .* \(?committed at version (\d+)[.)]", re.MULTILINE)
_COMMIT_INFO = re.compile(r"^Conflicting commit: (\{.*\})", re.MULTILINE)
"""Delta's conflicts of files name the version of the winner, all other conflicts quote its `commitInfo`
(DeltaErrors.scala of delta-io/delta)."""


def find_lost_race(conflict: str, message: str, table: LakePath, after: int) -> LostRace:
    """Return the race that a writer lost, with the commit that won it if the message of Delta's error names it.

    `conflict` is its class in Delta. The winner has a higher version than `after`, which the writer had read.
    """
    winner: Commit | None = None
    if match := _VERSION.search(message):
        winner = read_commit(table, int(match[1]))
    elif match := _COMMIT_INFO.search(message):
        info = json.loads(match[1])
        winner = next((commit for commit in commits_after(table, after) if _has_info(commit, info)), None)
    return lost_race_to(conflict, winner) if winner else LostRace(conflict=conflict)


def _has_info(commit: Commit, info: dict[str, Any]) -> bool:
    """Whether a commit has this `commitInfo`; Spark writes a `txnId`, delta-rs does not."""
    if info.get("txnId"):
        return bool(commit.txn_id == info["txnId"])
    return (commit.operation, round(commit.at.timestamp() * 1000)) == (info["operation"], info["timestamp"])


def lost_race_to(conflict: str, winner: Commit) -> LostRace:
    """Return the race that was lost to this commit."""
    return LostRace(conflict=conflict, operation=winner.operation, run_id=winner.run_id, version=winner.version)
