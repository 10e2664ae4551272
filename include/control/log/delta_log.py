"""Reads a Delta table's log in plain Python: who committed what, at which version.

The log is the truth of the commit protocol (ADR 0002). Only commit files are read here; what older commits left in a
checkpoint is asked of delta-rs, in `include.control.ledger.resolution`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from include.contracts.lake_path import LakePath
from include.control.storage.json_lines import json_lines
from include.control.storage.looks import is_sharing
from include.control.storage.stored_files import names_in, read_text
from include.errors import TornLogError

USER_METADATA_KEY = "millrace"
MAINTENANCE_KEY = "maintenance"
_KEYS_OF_RUNS = (USER_METADATA_KEY, MAINTENANCE_KEY)

_ROUND = 10

EPOCH_START = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True)
class Commit:
    """One version of a table.

    Attributes:
        version: the version the commit made.
        at: when, by the committer's clock.
        operation: Delta's name of it, such as `MERGE`.
        txns: appId -> txnVersion that the commit carries.
        metadata: Millrace's own part of `userMetadata`; empty for commits of others.
        run_id: the run of Millrace that it belongs to, be it a batch's or maintenance; empty for commits of others.
        txn_id: Delta's own id of the commit.
        metrics: Delta's operation metrics, numbers as text.
        added: data files added, relative to the table.
        changes_data: whether a reader can see other rows than before.
    """

    version: int
    at: datetime = EPOCH_START
    operation: str = ""
    txns: dict[str, int] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    run_id: str = ""
    txn_id: str = ""
    metrics: dict[str, str] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    changes_data: bool = False


def latest_version(table: LakePath) -> int:
    """The newest version of the table, -1 when there is none."""
    return max(commit_versions(table), default=-1)


def commits_still_known(table: LakePath, after: int | None) -> Iterator[Commit]:
    """The commits above `after` that the log still has, upward; for what needs no complete history.

    What was cleaned up or lost is passed over: a reader sees by the numbers whether anything is missing.
    """
    known = (read_commit(table, version) for version in commit_versions(table, after))
    return (commit for commit in known if commit is not None)


def commits_after(table: LakePath, version: int) -> Iterator[Commit]:
    """The commits above `version`, upward, until the log ends.

    Raises:
        TornLogError: a version between `version` and the newest one has no commit file any more.
    """
    newest = max(commit_versions(table, version), default=version)
    for at in range(version + 1, newest + 1):
        # Commits may have come while the log was listed: only one that is still missing below a newer one is gone.
        if (commit := read_commit(table, at)) is None:
            msg = (
                f"The log of {table} has no commit {at}, but has {newest}: it was cleaned up or damaged since version "
                f"{version} was last resolved\nDo not write; restore {table}/_delta_log/{at:020d}.json from a backup."
            )
            raise TornLogError(msg)
        yield commit


def read_commit(table: LakePath, version: int) -> Commit | None:
    """The commit that made `version`, or None when the log has no such file.

    Raises:
        TornLogError: the file is damaged.
    """
    file = table / "_delta_log" / f"{version:020d}.json"
    try:
        return _commit(version, [line.value for line in json_lines(commit_text(table, version))])
    except FileNotFoundError:
        return None
    except ValueError as error:
        msg = f"{file} cannot be read: {error}\nDo not write; restore the file from a backup."
        raise TornLogError(msg) from error


def commit_text(table: LakePath, version: int) -> str:
    """What the commit that made `version` says, as it stands.

    Raises:
        FileNotFoundError: the log has no such file.
    """
    if is_sharing(table):
        # Callers ask for the versions next, and the listing tells whether a text that is kept is still the same.
        commit_versions(table, version - 1)
    return read_text(table / "_delta_log" / f"{version:020d}.json")


def committed_at(table: LakePath, version: int) -> datetime:
    """When `version` was made, by the committer's clock; the start of 1970 where the log has forgotten it."""
    commit = read_commit(table, version)
    return commit.at if commit else EPOCH_START


def _commit(version: int, actions: list[dict[str, Any]]) -> Commit:
    info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    files = [action[kind] for action in actions for kind in ("add", "remove") if kind in action]
    told = _told(info.get("userMetadata"))
    return Commit(
        version=version,
        at=datetime.fromtimestamp(info.get("timestamp", 0) / 1000, UTC),
        operation=info.get("operation", ""),
        txns={action["txn"]["appId"]: action["txn"]["version"] for action in actions if "txn" in action},
        metadata=told.get(USER_METADATA_KEY, {}),
        run_id=str(next((told[key]["run_id"] for key in _KEYS_OF_RUNS if "run_id" in told.get(key, {})), "")),
        txn_id=info.get("txnId", ""),
        metrics=info.get("operationMetrics", {}),
        added=tuple(unquote(action["add"]["path"]) for action in actions if "add" in action),
        changes_data=any(file.get("dataChange", True) for file in files),
    )


def _told(text: str | None) -> dict[str, dict[str, Any]]:
    """The parts of a commit's userMetadata that may be Millrace's; what others put there is not ours."""
    try:
        given = json.loads(text or "{}")
    except json.JSONDecodeError:
        return {}
    return {key: part for key, part in given.items() if isinstance(part, dict)} if isinstance(given, dict) else {}


def commit_versions(table: LakePath, after: int | None = None) -> list[int]:
    """The versions above `after` whose commits the log has, upward."""
    names = names_in(table / "_delta_log", _looked_at_from(after or 0))
    versions = (int(name[:20]) for name in names if len(name) == 25 and name[:20].isdigit() and name.endswith(".json"))
    return sorted(version for version in versions if after is None or version > after)


def _looked_at_from(after: int) -> str:
    """A name at a round number below a version: whoever asks from nearby a moment later has seen the same names."""
    begin = max(after - 1, 0) // _ROUND * _ROUND
    return f"{begin:020d}" if begin else ""
