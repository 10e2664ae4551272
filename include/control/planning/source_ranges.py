"""Which versions of its sources a silver or gold batch reads: (what the last batch consumed, what is certified now]."""

from __future__ import annotations

from deltalake.exceptions import DeltaError, TableNotFoundError

from include.contracts.lake_path import LakePath
from include.contracts.spec.table_spec import GoldSpec, SilverSpec
from include.control.gates.gates import Gates
from include.control.gates.uncertified import why_uncertified
from include.control.ledger.resolution import table_id
from include.control.log.batch import BatchSources, StreamPosition
from include.control.log.delta_log import commits_after
from include.control.log.followed_tables import newest_table
from include.control.log.stored_tables import identity, open_table
from include.control.storage.stored_files import is_file
from include.errors import BadInputError, NotReadyError, TornLogError
from include.paths import LakehousePaths


def certified_sources(spec: SilverSpec | GoldSpec, gates: Gates, paths: LakehousePaths) -> dict[str, int]:
    """source table -> the version that may be read.

    Raises:
        NotReadyError: a source has no certified version yet.
    """
    certified = {table: gates.certified(table) for table in spec.source_tables}
    if missing := [table for table, version in certified.items() if version is None]:
        causes = [f"{table} has no certified version: {why_uncertified(table, gates, paths)}" for table in missing]
        raise NotReadyError(f"{spec.table}: {'; '.join(causes)}", f"Run {' and '.join(missing)} first.")
    return {table: version for table, version in certified.items() if version is not None}


def pin_sources(
    spec: SilverSpec | GoldSpec, paths: LakehousePaths, gates: Gates, position: StreamPosition | None
) -> BatchSources:
    """What a batch would read now: of each source, from what the last batch consumed to the certified version.

    Raises:
        NotReadyError: a source has no certified version yet, or one that was never read and cannot be any more.
    """
    last = position.last_sources if position else BatchSources()
    certified = certified_sources(spec, gates, paths)
    ids = {table: table_id(paths.table(table)) for table in certified}
    ranges = {table: (last.consumed(table, ids[table]), upto) for table, upto in certified.items()}
    for table, (after, upto) in ranges.items():
        if after != upto:
            _require_readable(spec.table, table, paths.table(table), upto)
    return BatchSources(ranges=ranges, source_ids=ids)


def changed_ranges(
    spec: SilverSpec | GoldSpec, sources: BatchSources, paths: LakehousePaths
) -> dict[str, tuple[int | None, int]]:
    """The ranges in which rows changed, or in which a full snapshot came: one without rows says that all are gone."""
    by_batch = isinstance(spec, SilverSpec) and spec.snapshot is not None
    return {table: span for table, span in sources.ranges.items() if _has_changes(paths.table(table), span, by_batch)}


def require_same_sources(sources: BatchSources, paths: LakehousePaths) -> None:
    """Refuse to read a batch's pinned versions from tables that are others by now.

    Raises:
        BadInputError: a source was built anew, or is gone.
    """
    for table, pinned in sources.source_ids.items():
        found = _id_at(paths.table(table), sources.ranges[table][1] if table in sources.ranges else None)
        if found != pinned:
            msg = (
                f"{table} at {paths.table(table)} is not the table that this batch has read: its id was {pinned} and "
                f"is {found or 'gone'}\nNothing more is written from it. Clear the task to read the new table from its "
                "beginning; if that says the same again, the batch is committed and wants its old source: put the old "
                "folder back, and build the table anew only when no run is under way."
            )
            raise BadInputError(msg)


def _id_at(table: LakePath, version: int | None) -> str:
    """The id of the table as it was at a version: a rebuild puts another one in its place, and keeps what was there."""
    try:
        newest = newest_table(table)
        if version in (None, newest.version()):
            return identity(newest)
        return identity(open_table(table, version=version, without_files=True))
    except TableNotFoundError:
        return ""
    except (DeltaError, TornLogError):  # not a version of this table, or one that its log has forgotten
        return table_id(table)


def _require_readable(reader: str, table: str, path: LakePath, version: int) -> None:
    """Refuse a version that Delta cannot put together any more, since the log below it was cleaned up."""
    if is_file(path / "_delta_log" / f"{version:020d}.json"):
        return
    try:
        open_table(path, version=version)
    except DeltaError as error:
        msg = (
            f"{reader}: version {version} of {table} is certified, but cannot be read any more: its log was cleaned up "
            f"since.\nReaders of {table} wait until a later version passes its gate: correct what it refuses, or let "
            f"it pass with `lakehouse gate override {table}`."
        )
        raise NotReadyError(msg) from error


def _has_changes(table: LakePath, span: tuple[int | None, int], by_batch: bool) -> bool:
    after, upto = span
    if after is None or after == upto:
        return after is None
    try:
        commits = [commit for commit in commits_after(table, after) if commit.version <= upto]
        return any(commit.changes_data or (by_batch and commit.txns) for commit in commits)
    except TornLogError:
        # The source's log was cleaned up since it was last read: what cannot be told any more is read again.
        return True
