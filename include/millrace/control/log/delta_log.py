"""Read the commits in a Delta table's log without Spark.

Only the log decides in the commit protocol (ADR 0002). This module reads commit files, `millrace.control.log.log_state`
applies them, and `millrace.control.log.followed_tables` begins with what delta-rs has read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from millrace.contracts.interval import Interval
from millrace.contracts.job.contention import LostRace
from millrace.contracts.lake_path import LakePath
from millrace.control.storage.json_lines import json_lines, json_object
from millrace.control.storage.read_cache import is_caching
from millrace.control.storage.stored_files import names_in, read_bytes
from millrace.errors import TornLogError

USER_METADATA_KEY = "millrace"
MAINTENANCE_KEY = "maintenance"

COMMIT, CHECKPOINT = ".json", ".checkpoint.parquet"
"""How the names of the files in a log end, after the version in 20 digits."""

Action = dict[str, Any]
"""One line of a commit: the kind of the action and its content."""

_ROUND = 10

_CHANGED_ROWS = (
    *(f"numTargetRows{change}" for change in ("Inserted", "Updated", "Deleted")), "numUpdatedRows", "numDeletedRows",
)  # fmt: skip
"""The metrics of a MERGE, an UPDATE and a DELETE; `numOutputRows` also counts the rows that they copy."""

_KEYS = {"add": {"path"}, "remove": {"path"}, "txn": {"appId", "version"}}
"""Action -> the keys that it must have, of those that are read here."""

EPOCH_START = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True)
class Commit:
    """A commit of a table.

    Attributes:
        version: the version of the commit.
        at: the time of the commit, by the clock of the writer.
        operation: Delta's name of the operation, such as `MERGE`.
        engine: the program that wrote it with its version, such as `Apache-Spark/4.1.3 Delta-Lake/4.4.0`; empty if it
            did not say.
        txns: appId -> txnVersion in the commit.
        metadata: Millrace's part of `userMetadata`; empty for commits of other systems.
        run_id: the run of Millrace that wrote or maintained the table; empty for commits of other systems.
        txn_id: Delta's id of the commit.
        metrics: Delta's operation metrics, numbers as text.
        parameters: Delta's parameters of the operation, each as text, such as the columns of ZORDER BY.
        added: the added data files, relative to the table.
        changes_data: whether the commit changes rows.
        changes_definition: whether it sets the columns and properties of the table.
    """

    version: int
    at: datetime = EPOCH_START
    operation: str = ""
    engine: str = ""
    txns: dict[str, int] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    run_id: str = ""
    txn_id: str = ""
    metrics: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    changes_data: bool = False
    changes_definition: bool = False

    @property
    def changed_rows(self) -> int:
        """The number of rows that it inserted, updated and deleted, by Delta's metrics; 0 if these do not say so."""
        numbers = [int(self.metrics[name]) for name in _CHANGED_ROWS if name in self.metrics]
        return sum(numbers) if numbers else int(self.metrics.get("numOutputRows", 0))

    @property
    def interval(self) -> Interval | None:
        """The interval of the batch; None for a commit that is none of a batch."""
        start, end = (self.metadata.get(f"interval_{name}") for name in ("start", "end"))
        return Interval.model_validate({"start": start, "end": end}) if start and end else None


def latest_version(table: LakePath) -> int:
    """Return the newest version of the table; -1 if there is no table."""
    return max(commit_versions(table), default=-1)


def newest_change(table: LakePath) -> int:
    """Return the newest version that the log shows to have other rows than the version before it.

    Return the newest version if no remaining commit changed rows, and -1 if there is no table.
    """
    versions = commit_versions(table)
    commits = (read_commit(table, version) for version in reversed(versions))
    changed = (commit.version for commit in commits if commit and commit.changes_data)
    return next(changed, max(versions, default=-1))


def remaining_commits(table: LakePath, after: int | None) -> Iterator[Commit]:
    """Return the commits above `after` that the log still has, in ascending order; commits may be missing."""
    commits = (read_commit(table, version) for version in commit_versions(table, after))
    return (commit for commit in commits if commit is not None)


def commits_after(table: LakePath, version: int) -> Iterator[Commit]:
    """Yield all commits above `version`, in ascending order.

    Raises:
        TornLogError: a commit file between `version` and the newest version is missing.
    """
    newest = max(commit_versions(table, version), default=version)
    for at in range(version + 1, newest + 1):
        # The listing may lack a new commit, so each file is read before it counts as missing.
        if (commit := read_commit(table, at)) is None:
            raise TornLogError(
                f"The log of {table} has no commit {at}, but has {newest}: it was cleaned up or damaged since version "
                f"{version} was last resolved",
                f"Do not write; restore {commit_file(table, at)} from a backup.",
            )
        yield commit


def read_commit(table: LakePath, version: int) -> Commit | None:
    """Return the commit of `version`; None if the log does not have its file.

    Raises:
        TornLogError: the file is damaged.
    """
    try:
        return _parse_commit(version, commit_actions(table, version))
    except FileNotFoundError:
        return None


def commit_actions(table: LakePath, version: int) -> list[Action]:
    """Return the actions of a commit.

    Raises:
        FileNotFoundError: the log does not have its file.
        TornLogError: the file is damaged.
    """
    try:
        return parsed_actions(_commit_bytes(table, version))
    except ValueError as error:
        cause = f"{commit_file(table, version)} cannot be read: {error}"
        raise TornLogError(cause, "Do not write; restore the file from a backup.") from error


def existing_actions(table: LakePath, version: int) -> list[Action]:
    """Return the actions of a commit that the log had a moment ago.

    Raises:
        TornLogError: the file is missing or damaged.
    """
    try:
        return commit_actions(table, version)
    except FileNotFoundError as error:
        cause = f"The log of {table} lost version {version} while it was read"
        raise TornLogError(cause, "Try again; if this comes again, restore the file from a backup.") from error


def parsed_actions(commit: bytes) -> list[Action]:
    """Return the actions in the content of a commit file.

    Raises:
        ValueError: it is not what the protocol of Delta says of a commit: an empty one would seem to change nothing.
    """
    actions: list[Action] = [line.value for line in json_lines(commit.decode())]
    if not actions:
        raise ValueError("it is empty")
    for action in actions:
        bodies = action.items() if isinstance(action, dict) else [("", None)]
        if not all(isinstance(body, dict) and _KEYS.get(kind, set()) <= body.keys() for kind, body in bodies):
            raise ValueError(f"{str(action)[:80]} is no action of Delta")
    return actions


def commit_file(table: LakePath, version: int) -> LakePath:
    """Return the path of the commit of a version."""
    return table / f"_delta_log/{version:020d}{COMMIT}"


def _commit_bytes(table: LakePath, version: int) -> bytes:
    if is_caching(table):
        # Callers ask for the versions next, and the listing tells whether a cached text is still valid.
        commit_versions(table, version - 1)
    return read_bytes(commit_file(table, version))


def commit_mark(table: LakePath, version: int) -> str:
    """Return a digest of a commit file; empty if the log no longer has it.

    It distinguishes the commit from commits of the same version in another table at the path, or in a restored log.
    """
    try:
        return hashlib.sha256(_commit_bytes(table, version)).hexdigest()[:16]
    except FileNotFoundError:
        return ""


def commit_time(table: LakePath, version: int) -> datetime:
    """Return the time of a commit by the clock of its writer; the start of 1970 if the log no longer has it."""
    commit = read_commit(table, version)
    return commit.at if commit else EPOCH_START


def _parse_commit(version: int, actions: list[Action]) -> Commit:
    info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    files = [action[kind] for action in actions for kind in ("add", "remove") if kind in action]
    # Other systems may write any text there.
    items = json_object(info.get("userMetadata")).items()
    metadata = {key: value for key, value in items if isinstance(value, dict)}
    keys = [key for key in (USER_METADATA_KEY, MAINTENANCE_KEY) if "run_id" in metadata.get(key, {})]
    return Commit(
        version=version,
        at=datetime.fromtimestamp(info.get("timestamp", 0) / 1000, UTC),
        operation=info.get("operation", ""),
        engine=str(info.get("engineInfo", "")),
        txns={action["txn"]["appId"]: action["txn"]["version"] for action in actions if "txn" in action},
        metadata=metadata.get(USER_METADATA_KEY, {}),
        run_id=str(metadata[keys[0]]["run_id"]) if keys else "",
        txn_id=info.get("txnId", ""),
        metrics=info.get("operationMetrics") or {},
        parameters=info.get("operationParameters") or {},
        added=tuple(unquote(action["add"]["path"]) for action in actions if "add" in action),
        changes_data=any(file.get("dataChange", True) for file in files),
        changes_definition=any("metaData" in action for action in actions),
    )


def commit_versions(table: LakePath, after: int | None = None) -> list[int]:
    """Return the versions above `after` whose commit files the log has, in ascending order."""
    # The listing starts at a round number, so that a similar request soon afterwards can use the cached names.
    start = max((after or 0) - 1, 0) // _ROUND * _ROUND
    names = names_in(table / "_delta_log", f"{start:020d}" if start else "")
    return sorted(version for version in versions_in(names, COMMIT) if after is None or version > after)


def versions_in(names: Iterable[str], ending: str) -> set[int]:
    """Return the versions of the files in a log whose names have an ending: `COMMIT` or `CHECKPOINT`."""
    return {int(name[:20]) for name in names if name[:20].isdigit() and name[20:] == ending}


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
