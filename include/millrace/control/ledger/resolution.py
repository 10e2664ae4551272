"""Resolve a stream: read the table's log from the last resolved version on, and find the attempts that won.

The token in the commit decides, neither the number nor the ledger. A log that does not continue where it was last
resolved stops the run; Millrace never guesses (ADR 0002).
"""

from __future__ import annotations

from itertools import pairwise

from deltalake.exceptions import DeltaError, TableNotFoundError

from millrace.contracts.lake_path import LakePath
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.batch import ONE_STREAM, Stream, StreamPosition, Winner, winner_of
from millrace.control.log.delta_log import Commit, commits_after, latest_version, read_commit, remaining_commits
from millrace.control.log.followed_tables import FollowedTable, newest_table
from millrace.control.log.stored_tables import identity, open_table
from millrace.control.storage.read_cache import clear_read_cache
from millrace.errors import TornLogError


def resolve(table: LakePath, stream: Stream, ledger: Ledger) -> StreamPosition:
    """Return the current position of the stream, and record the new winners in the ledger.

    Raises:
        TornLogError: the log does not continue where it was last resolved.
        deltalake.exceptions.TableNotFoundError: there is no table at the path.
    """
    clear_read_cache()
    position, new = read_position(table, stream, ledger)
    ledger.record_committed(new)
    return position


def read_position(table: LakePath, stream: Stream, ledger: Ledger) -> tuple[StreamPosition, tuple[Winner, ...]]:
    """Return the current position of the stream, and the winners that the ledger lacks; write nothing."""
    newest = newest_table(table)
    stream_key = (stream.table, newest.table_id, stream.name)
    last = _at_its_version(table, ledger.last_committed(*stream_key))
    try:
        return _read_after(last, table, newest, stream)
    except TornLogError:
        recorded = ledger.last_recorded(*stream_key)
        if recorded == last:
            raise
        return _read_after(recorded, table, newest, stream)  # the state was older than the ledger


def _read_after(
    last: Winner | None, table: LakePath, at_end: FollowedTable, stream: Stream
) -> tuple[StreamPosition, tuple[Winner, ...]]:
    """Return the position and the winners after the last resolved batch."""
    if last:
        _require_in_log(table, last)
        # Of several streams one may rest for years, while the others add commits that hold none of its batches.
        if stream.name != ONE_STREAM and at_end.transaction_version(stream.app_id) == last.batch_seq:
            return StreamPosition(at_end.table_id, at_end.version, last), ()
    recorded = None if last else at_end.transaction_version(stream.app_id)
    # A stream that neither ledger nor log knows starts at the end of the log.
    first_start = -1 if recorded is not None or at_end.version == 0 else at_end.version
    start = last.version if last else first_start
    commits = _commits_after(start, table, last, at_end, stream)
    new = tuple(winner for commit in commits if (winner := winner_of(commit, stream.app_id)))
    _require_all_numbers(stream, last, new, recorded)
    newest = commits[-1].version if commits else start
    return StreamPosition(at_end.table_id, newest, new[-1] if new else last), new


def table_id(table: LakePath) -> str:
    """Return the id of the table, which changes with a rebuild or a new folder.

    Raises:
        TableNotFoundError: there is no table at the path.
    """
    return newest_table(table).table_id


def table_id_at(table: LakePath, version: int | None) -> str:
    """Return the id of the table at a version: a rebuild replaces the table, and keeps its earlier versions.

    It is empty without a table, and the id of now if the log does not have that version any more.
    """
    try:
        newest = newest_table(table)
        if version in (None, newest.version):
            return newest.table_id
        return identity(open_table(table, version=version, without_files=True))
    except TableNotFoundError:
        return ""
    except (DeltaError, TornLogError):  # the table never had this version, or its log no longer has it
        return table_id(table)


def winner_at(table: LakePath, app_id: str, batch_seq: int, after: int) -> Winner | None:
    """Return the attempt that won `batch_seq` in a commit above version `after`; None if there is none."""
    winners = (winner_of(commit, app_id) for commit in commits_after(table, after))
    return next((winner for winner in winners if winner and winner.batch_seq == batch_seq), None)


def _at_its_version(table: LakePath, last: Winner | None) -> Winner | None:
    """Return the last recorded batch with the version that it has in the log.

    A rebuild records its version before it commits. A commit without a number in between, such as a manual ALTER,
    gives the rebuild a higher version (ADR 26).
    """
    if last is None or not last.intent.sources.rebuild:
        return last
    winners = (winner_of(commit, last.intent.app_id) for commit in remaining_commits(table, last.version - 1))
    return next((winner for winner in winners if winner and winner.token == last.token), last)


def _commits_after(
    start: int, table: LakePath, last: Winner | None, at_end: FollowedTable, stream: Stream
) -> list[Commit]:
    """Return the commits after version `start`.

    Delta may have cleaned up some of them. That is harmless if the remaining commits hold every batch of the stream
    after the last resolved one, as for a table that was only optimized for longer than its log retention.
    """
    try:
        return list(commits_after(table, start))
    except TornLogError:
        remaining = list(remaining_commits(table, start))
        batches = [commit.txns[stream.app_id] for commit in remaining if stream.app_id in commit.txns]
        newest = at_end.transaction_version(stream.app_id) or 0
        if last is None or batches != list(range(last.batch_seq + 1, newest + 1)) or newest < last.batch_seq:
            raise
        return remaining


def _require_in_log(table: LakePath, last: Winner) -> None:
    """Require that the log still has the last recorded batch: a restored or replaced log has not."""
    commit = read_commit(table, last.version)
    if commit is None and latest_version(table) > last.version:
        return  # Delta has cleaned it up; the later commits are checked when they are read
    winner = winner_of(commit, last.intent.app_id) if commit else None
    if winner is None or winner.token != last.token:
        raise TornLogError(
            f"{last.intent.table}: batch {last.batch_seq} was version {last.version}, but the log no longer has it "
            f"there: {table} was put back to an older state, or replaced",
            "Do not write; restore its files and _delta_log from a backup that holds this version.",
        )


def _require_all_numbers(stream: Stream, last: Winner | None, new: tuple[Winner, ...], recorded: int | None) -> None:
    """Require that the batch numbers have no gap, from the last resolved batch to the last one that Delta records."""
    numbers = [last.batch_seq if last else 0, *(winner.batch_seq for winner in new)]
    for before, after in pairwise(numbers):
        if after != before + 1:
            raise TornLogError(
                f"{stream.table}: batch {after} follows batch {before} in the log of stream {stream.name}: commits are "
                "missing",
                "Do not write; restore the missing files of _delta_log from a backup.",
            )
    if numbers[-1] < (recorded or 0):
        raise TornLogError(
            f"{stream.table}: Delta has recorded batch {recorded} of stream {stream.name}, but neither the ledger nor "
            "the log has it",
            "Do not write; restore ops/batches or the files of _delta_log from a backup.",
        )
