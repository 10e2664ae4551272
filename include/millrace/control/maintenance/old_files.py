"""Find the files of a table that its newest version does not need, and when VACUUM deletes each, without Spark.

VACUUM lists the folder of the table. It keeps the files of the newest version, those that a version has removed within
the retention, and all others that are younger than the retention: they may belong to a commit that is still to come.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from urllib.parse import unquote

from deltalake import DeltaTable

from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.duration import interval_of
from millrace.control.log.checkpoints import removed_files
from millrace.control.log.delta_log import commit_time, commit_versions
from millrace.control.log.stored_tables import logged_files
from millrace.control.storage.stored_files import StoredFile
from millrace.errors import MillraceError

RETENTION_PROPERTY = "delta.deletedFileRetentionDuration"

LOG_RETENTION_PROPERTY = "delta.logRetentionDuration"

_DELTAS_OWN = {RETENTION_PROPERTY: timedelta(weeks=1), LOG_RETENTION_PROPERTY: timedelta(days=30)}
"""The retentions of a table that does not state them (Delta Lake 4.4)."""

LEAST_RETENTION = timedelta(hours=168)
"""Below this, Delta's own limit, a person has to allow a VACUUM: a long read, or an open write, may need the files."""

_CHANGES = "_change_data"


@dataclass(frozen=True)
class OldFile:
    """A file that the newest version of a table does not need.

    Attributes:
        path: its path relative to the table.
        size: bytes.
        due: when VACUUM may delete it.
        is_removed: whether the log names the version that has removed it; the others are those of changes, of commits
            that never came, and those that were due before the last checkpoint.
    """

    path: str
    size: int
    due: datetime
    is_removed: bool


@dataclass(frozen=True)
class OldFiles:
    """The files that the newest version of a table does not need.

    Attributes:
        kept: those that VACUUM keeps for now.
        due: those that it deletes now.
        retention: how long VACUUM keeps a file.
        is_stated: whether the table itself says so. If not, it must before VACUUM runs.
    """

    kept: Sequence[OldFile] = ()
    due: Sequence[OldFile] = ()
    retention: timedelta = _DELTAS_OWN[RETENTION_PROPERTY]
    is_stated: bool = True

    @property
    def needs_approval(self) -> bool:
        """Whether a person has to allow that VACUUM deletes something."""
        return bool(self.due) and self.retention < LEAST_RETENTION

    @property
    def kept_bytes(self) -> int:
        """The bytes that VACUUM keeps for now."""
        return sum(file.size for file in self.kept)

    @property
    def due_bytes(self) -> int:
        """The bytes that VACUUM frees now."""
        return sum(file.size for file in self.due)

    @property
    def next_due(self) -> datetime | None:
        """When the first of those that are kept may go; None if none is kept."""
        return min((file.due for file in self.kept), default=None)


def stated_retention(properties: Mapping[str, str], path: str, key: str = RETENTION_PROPERTY) -> timedelta:
    """Return how long VACUUM keeps files, by the properties of the table itself: since Delta 4.1 nothing else counts.

    Args:
        properties: the properties.
        path: the folder of the table.
        key: another property: that of the log says how long Delta keeps commits.

    Raises:
        MillraceError: the property has a form that Millrace does not write and does not know.

    >>> stated_retention({"delta.deletedFileRetentionDuration": "interval 30 days"}, "silver/orders").days
    30
    """
    text = properties.get(key)
    if text is None:
        return _DELTAS_OWN[key]
    if (retention := interval_of(text)) is None:
        raise MillraceError(
            f"{path}: {key} is {text!r}, which is no number of weeks, days or hours",
            "State `maintenance: {vacuum: {retain: 30 days}}` in its spec: the next batch sets the property.",
        )
    return retention


def old_files(
    path: LakePath, delta: DeltaTable, stored: Iterable[StoredFile], now: datetime, least: timedelta
) -> OldFiles:
    """Return the files that the newest version of a table does not need.

    Args:
        path: the folder of the table.
        delta: the table, open at its newest version.
        stored: the files below the folder.
        now: the time.
        least: the least retention, by the spec; the table itself may state more.

    Raises:
        TornLogError: its log cannot be read.
        MillraceError: its retention has an unknown form.
    """
    metadata = delta.metadata()
    stated = stated_retention(metadata.configuration, str(path))
    retention = max(stated, least)
    needed = {unquote(name) for name in logged_files(delta)["path"].to_pylist()}
    # A vector of deletions belongs to a data file, and Delta knows to which.
    shown = [file for file in stored if not file.path.endswith(".bin") and file.path not in needed]
    old = [file for file in shown if not _is_hidden(file.path, metadata.partition_columns)]
    removed = removed_files(path, delta.version()) if old else {}
    gone = {unquote(name): at_ms for name, at_ms in removed.items()}
    files: dict[bool, list[OldFile]] = {True: [], False: []}
    for file in old:
        since = max(file.modified, gone.get(file.path, 0) / 1000)
        due = datetime.fromtimestamp(since, UTC) + retention
        files[due <= now].append(OldFile(file.path, file.size, due, file.path in gone))
    return OldFiles(files[False], files[True], retention, is_stated=stated == retention)


def oldest_whole(path: LakePath, retention: timedelta, now: datetime) -> int:
    """Return the oldest version of a table that VACUUM leaves whole: the one that was the newest a retention ago.

    Return the oldest version of which the log has the commit, if that is younger.
    """
    versions = commit_versions(path)
    newer = bisect_right(versions, now - retention, key=partial(commit_time, path))
    return versions[max(newer - 1, 0)]


def _is_hidden(path: str, partitioned_by: Collection[str]) -> bool:
    """Whether VACUUM does not look at a file, as Delta decides it (`DeltaTableUtils.isHiddenDirectory`, 4.4)."""
    shown = (_CHANGES, *(f"{column}=" for column in partitioned_by))
    return any(part.startswith((".", "_")) and not part.startswith(shown) for part in path.split("/"))
