"""Find the readers that still need old versions of a table, which VACUUM must not remove.

Delta refuses time travel and the change feed for every version older than the table's retention but the newest, even
while its files exist. So a reader of an old version is in danger long before a file is deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from millrace.catalog import Catalog
from millrace.contracts.counted import counted
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.common_settings import TableSpec
from millrace.contracts.spec.duration import RETENTION
from millrace.contracts.spec.values import LAYERS
from millrace.control.ledger.resolution import table_id
from millrace.control.log.delta_log import commit_versions, remaining_commits
from millrace.control.ops_tables import OpsTables
from millrace.control.planning.stream_positions import stream_position
from millrace.specs.invalid_spec import MaybeInvalidSpec

CERTIFIED_READERS = "readers of the certified version"


@dataclass(frozen=True)
class Reader:
    """A reader of one version of a table.

    Attributes:
        name: the reader, for people.
        version: the version that it reads.
        since: when the next change of data made that version an old one; None while it is the newest.
        is_logged: whether the log still has the commit of that version; without it, nobody can read the version.
    """

    name: str
    version: int
    since: datetime | None
    is_logged: bool = True

    def __str__(self) -> str:
        return f"{self.name} (version {self.version}{'' if self.is_logged else ', which the log no longer has'})"


def retention_of(spec: TableSpec) -> timedelta:
    """Return how long old versions of the table stay readable."""
    return RETENTION.parse(spec.maintenance.vacuum.retain)


def length_of(retention: timedelta) -> str:
    """Return a retention in words.

    >>> length_of(timedelta(days=2)), length_of(timedelta(hours=36))
    ('2 days', '36 hours')
    """
    days, rest = divmod(retention, timedelta(days=1))
    return counted(days, "day") if not rest else counted(round(retention / timedelta(hours=1)), "hour")


def readers_of(spec: TableSpec, catalog: Catalog, ops: OpsTables) -> tuple[Reader, ...]:
    """Return the readers of the certified version, and each downstream table at the version that it still needs."""
    certified, paths = ops.gates.certified(spec.table), ops.paths
    positions = {CERTIFIED_READERS: certified} if certified is not None else {}
    ledger, path = ops.ledger, paths.table(spec.table)
    readers: list[MaybeInvalidSpec] = [catalog.specs[name] for name in catalog.graph.readers.get(spec.table, ())]
    # An invalid spec may not state what it reads; the log of its table has what it has read.
    for other in (*readers, *(invalid for invalid in catalog.invalid.values() if invalid.layer in LAYERS)):
        position = stream_position(other, paths, ledger)
        if position is None or position.last is None:
            continue
        is_closed = ledger.closed_rows(position.last) is not None
        needed = position.last_sources.needed_version(spec.table, table_id(path), is_closed=is_closed)
        if needed is not None:
            positions[other.table] = needed
    return tuple(_reader(name, version, path) for name, version in positions.items())


def readers_in_danger(readers: tuple[Reader, ...], retention: timedelta, now: datetime) -> tuple[Reader, ...]:
    """Return the readers whose version has been an old one for more than half the retention.

    Also return those whose version is an old one and no longer in the log: nobody knows for how long it has been.
    """
    behind = [(reader, reader.since) for reader in readers if reader.since is not None]
    return tuple(reader for reader, since in behind if not reader.is_logged or now - since > retention / 2)


def _reader(name: str, version: int, path: LakePath) -> Reader:
    since = _since(path, version)
    return Reader(name, version, since, is_logged=since is None or version in commit_versions(path, version - 1))


def _since(path: LakePath, version: int) -> datetime | None:
    """Return when the version became an old one, or a later time where the log was cleaned below that."""
    for commit in remaining_commits(path, version):
        if commit.changes_data or commit.version != version + 1:
            return commit.at
        version = commit.version
    return None
