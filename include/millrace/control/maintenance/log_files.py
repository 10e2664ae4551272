"""The files of a table's log: how many commits readers read, and which files of the log nobody needs any more.

Delta writes a checkpoint with each tenth commit, and only then cleans the log. The log of a table without new batches
stays as it is, and so does what its commits say of the values of rows that were deleted since.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from deltalake import DeltaTable

from millrace.contracts.counted import counted
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.changes.table_properties import KeptFor, cleans_log, log_kept_for
from millrace.control.log.checkpoints import whole_checkpoints
from millrace.control.log.delta_log import COMMIT, versions_in
from millrace.control.log.stored_tables import open_table
from millrace.control.maintenance.old_files import LOG_RETENTION_PROPERTY, stated_retention
from millrace.control.maintenance.retention import CERTIFIED_READERS, Reader
from millrace.control.ops_tables import OpsTables
from millrace.control.planning.stream_positions import stream_positions
from millrace.control.storage.stored_files import StoredFile, delete_files

_LOG = "_delta_log/"
_INTERVAL, _DELTAS_INTERVAL = "delta.checkpointInterval", 10
_MOST_INTERVALS = 2
"""A checkpoint is written after so many times the commits after which Delta writes one."""

_OF_VERSION = re.compile(r"\.?(\d{20})\.(?:json|crc|checkpoint\..*|json\.crc|crc\.crc)")
"""The name of a file of one version: a commit, a checksum or a checkpoint, each maybe with a checksum of Hadoop's."""


@dataclass(frozen=True)
class LogHealth:
    """The state of a table's log.

    Attributes:
        commits: the number of commits that it still has.
        after_checkpoint: how many of them a reader reads after the last checkpoint.
        size: the bytes of all its files.
        checkpoint_at: when the last checkpoint was written; None without one.
        oldest_kept: the version of a checkpoint; nobody needs the versions below it, and they are past the retention of
            the log. 0 if there are none.
        expired: the names of the files of those versions.
        is_quiet: whether all commits are past the retention, so that Delta does not clean the log.
        most_after_checkpoint: the most commits that a reader should read after a checkpoint.
        is_cleaned: whether Delta cleans it.
        kept_for: for whom Millrace has set that it is not cleaned.
        has_erased: whether the expired commits say of rows that were erased since; these do not wait for more.
    """

    commits: int
    after_checkpoint: int
    size: int
    checkpoint_at: datetime | None
    oldest_kept: int = 0
    expired: Sequence[str] = ()
    is_quiet: bool = False
    most_after_checkpoint: int = _MOST_INTERVALS * _DELTAS_INTERVAL
    is_cleaned: bool = True
    kept_for: KeptFor = KeptFor.NOBODY
    has_erased: bool = False

    @property
    def needs_checkpoint(self) -> bool:
        """Whether maintenance writes a checkpoint: readers read many commits, or the log could not be cleaned."""
        is_last = self.is_quiet and self.commits > 1 and self.after_checkpoint > 0
        return is_last or self.after_checkpoint > self.most_after_checkpoint

    @property
    def expired_commits(self) -> int:
        """The number of expired commits."""
        return len(versions_in(self.expired, COMMIT))

    @property
    def needs_cleaning(self) -> bool:
        """Whether maintenance cleans the log: Delta itself does it soon where there are new commits."""
        are_many = self.expired_commits > self.most_after_checkpoint
        return bool(self.expired) and (self.is_quiet or are_many or self.has_erased)


def read_commits(logs: Mapping[str, LogHealth]) -> str:
    """Return in one line how many commits readers of some logs read; empty for none."""
    return _words(logs, lambda log: f"{counted(log.after_checkpoint, 'commit')} since the last checkpoint")


def expired_commits(logs: Mapping[str, LogHealth]) -> str:
    """Return in one line how many commits of some logs are expired; empty for none."""
    return _words(logs, lambda log: f"{counted(log.expired_commits, 'commit')} past the retention of the log")


def _words(logs: Mapping[str, LogHealth], of_log: Callable[[LogHealth], str]) -> str:
    return "; ".join(f"{name}: {of_log(log)}" if name else of_log(log) for name, log in logs.items())


def log_health(
    delta: DeltaTable,
    path: LakePath,
    stored: Iterable[StoredFile],
    oldest_needed: Callable[[], int],
    now: datetime,
    erased_at: datetime | None = None,
) -> LogHealth:
    """Return the state of the log of an open table.

    Args:
        delta: the table.
        path: its folder.
        stored: the files below the folder.
        oldest_needed: returns the oldest version that somebody needs: its commit and all later ones stay. It is only
            asked if some could go.
        now: the time.
        erased_at: when subjects were last erased from it; None if nobody was.

    Raises:
        MillraceError: the retention of the log has an unknown form.
    """
    files = {file.path.removeprefix(_LOG): file for file in stored if file.path.startswith(_LOG)}
    checkpoints = {int(name[:20]): name for name in sorted(files) if re.match(r"\d{20}\.checkpoint", name)}
    newest, commits = max(checkpoints, default=-1), versions_in(files, COMMIT)
    properties = delta.metadata().configuration
    cutoff = (now - stated_retention(properties, str(path), LOG_RETENTION_PROPERTY)).timestamp()
    young = [at for at in commits if files[f"{at:020d}{COMMIT}"].modified > cutoff]
    bases = [0, *whole_checkpoints(files)] if cleans_log(properties) else [0]
    oldest_kept = max(at for at in bases if at <= min([delta.version(), *young]))
    if _below(files, oldest_kept):
        needed = oldest_needed()
        oldest_kept = max(at for at in bases if at <= min(needed, oldest_kept))
    expired = _below(files, oldest_kept)
    return LogHealth(
        commits=len(commits),
        after_checkpoint=sum(newest < at <= delta.version() for at in commits),
        size=sum(file.size for file in files.values()),
        checkpoint_at=datetime.fromtimestamp(files[checkpoints[newest]].modified, UTC) if checkpoints else None,
        oldest_kept=oldest_kept,
        expired=expired,
        is_quiet=not young,
        most_after_checkpoint=_MOST_INTERVALS * int(properties.get(_INTERVAL, _DELTAS_INTERVAL)),
        is_cleaned=cleans_log(properties),
        kept_for=log_kept_for(properties),
        has_erased=any(erased_at and files[name].modified <= erased_at.timestamp() for name in expired),
    )


def _below(files: Iterable[str], checkpoint: int) -> list[str]:
    """Return the files of the versions below a checkpoint, the oldest first."""
    found = {name: match for name in files if (match := _OF_VERSION.fullmatch(name))}
    return sorted((name for name in found if int(found[name][1]) < checkpoint), key=lambda name: (found[name][1], name))


def needed_version(spec: AnySpec, ops: OpsTables, readers: Iterable[Reader]) -> int:
    """Return the oldest version of a table of which the log must still tell: that of its slowest reader.

    All versions are needed while a batch is not closed, since it will be counted again; and while no version is
    certified, since the gate judges all of them.
    """
    versions = {reader.name: reader.version for reader in readers}
    lasts = [position.last for position in stream_positions(spec, ops.paths, ops.ledger)]
    is_closed = all(ops.ledger.closed_rows(last) is not None for last in lasts if last)
    return min(versions.values()) if CERTIFIED_READERS in versions and is_closed else 0


def write_checkpoint(path: LakePath) -> None:
    """Write a checkpoint of the newest version of a table."""
    open_table(path).create_checkpoint()


def clean_log(path: LakePath, log: LogHealth) -> None:
    """Delete the expired files of a log, the oldest first; the caller holds the lease of the table.

    Raises:
        DeltaError: the checkpoint below which they are cannot be read; nothing was deleted.
    """
    open_table(path, version=log.oldest_kept)
    delete_files(path / _LOG.rstrip("/"), log.expired)
