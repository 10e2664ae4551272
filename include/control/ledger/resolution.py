"""Resolve: read the table's log upward from the last resolved version, and learn which attempts won.

The token found in the commit is the truth: not the number, not the ledger. A log that does not continue where it was
last resolved stops the run; Millrace never guesses (ADR 0002).
"""

from __future__ import annotations

from itertools import pairwise

from deltalake import DeltaTable

from include.contracts.lake_path import LakePath
from include.control.ledger.ledger import Ledger
from include.control.log.batch import Stream, StreamPosition, Winner, winner_of
from include.control.log.delta_log import Commit, commits_after, commits_still_known, latest_version, read_commit
from include.control.log.followed_tables import newest_table
from include.control.log.stored_tables import identity
from include.control.storage.looks import look_again
from include.errors import TornLogError


def resolve(table: LakePath, stream: Stream, ledger: Ledger) -> StreamPosition:
    """The stream's position in the log as it is now; winners that the ledger does not know yet are written to it.

    Raises:
        TornLogError: the log does not continue where it was last resolved.
        deltalake.exceptions.TableNotFoundError: there is no table at the path.
    """
    look_again()
    position, new = read_position(table, stream, ledger)
    ledger.record_committed(new)
    return position


def read_position(table: LakePath, stream: Stream, ledger: Ledger) -> tuple[StreamPosition, tuple[Winner, ...]]:
    """The same reading without writing anything: the position, and the winners unknown to the ledger."""
    delta = newest_table(table)
    named = (stream.table, identity(delta), stream.name)
    known = _where_it_is(table, ledger.last_committed(*named))
    try:
        return _look(table, delta, stream, known)
    except TornLogError:
        recorded = ledger.last_recorded(*named)
        if recorded == known:
            raise
        return _look(table, delta, stream, recorded)  # the state was behind what is written down


def _look(
    table: LakePath, delta: DeltaTable, stream: Stream, known: Winner | None
) -> tuple[StreamPosition, tuple[Winner, ...]]:
    if known:
        _check_still_there(table, known)
    recorded = None if known else delta.transaction_version(stream.app_id)
    start = known.version if known else _start_of_unknown_stream(delta, recorded)
    commits = _commits_since(table, start, known, delta, stream)
    new = tuple(winner for commit in commits if (winner := winner_of(commit, stream.app_id)))
    _check_numbers(stream, known, new, recorded)
    newest = commits[-1].version if commits else start
    return StreamPosition(identity(delta), newest, new[-1] if new else known), new


def table_id(table: LakePath) -> str:
    """The id of the table: another one after it was built anew, in its place or in a folder of its own.

    Raises:
        TableNotFoundError: there is none.
    """
    return identity(newest_table(table))


def winner_at(table: LakePath, app_id: str, batch_seq: int, after: int) -> Winner | None:
    """The attempt that won `batch_seq`, looked for in the commits above version `after`."""
    winners = (winner_of(commit, app_id) for commit in commits_after(table, after))
    return next((winner for winner in winners if winner and winner.batch_seq == batch_seq), None)


def _where_it_is(table: LakePath, known: Winner | None) -> Winner | None:
    """The last known batch, at the version that it has in the log.

    A rebuild writes its version down before it commits; whoever commits in between without a number, an ALTER by hand
    say, makes it a later one (ADR 26).
    """
    if known is None or not known.intent.sources.rebuild:
        return known
    found = (winner_of(commit, known.intent.app_id) for commit in commits_still_known(table, known.version - 1))
    return next((winner for winner in found if winner and winner.token == known.token), known)


def _start_of_unknown_stream(delta: DeltaTable, recorded: int | None) -> int:
    """Where to read from when the ledger knows nothing: the end, unless the log already has batches of the stream."""
    return -1 if recorded is not None or delta.version() == 0 else delta.version()


def _commits_since(
    table: LakePath, start: int, known: Winner | None, delta: DeltaTable, stream: Stream
) -> list[Commit]:
    """The commits above `start`.

    Some of them Delta may have cleaned up: that is no harm where those that are left hold every batch of the stream
    from the known one to the one that Delta has recorded last. So a table that was only optimized for longer than its
    log is kept goes on.
    """
    try:
        return list(commits_after(table, start))
    except TornLogError:
        left = list(commits_still_known(table, start))
        batches = [commit.txns[stream.app_id] for commit in left if stream.app_id in commit.txns]
        wanted = delta.transaction_version(stream.app_id) or 0
        if known is None or batches != list(range(known.batch_seq + 1, wanted + 1)) or wanted < known.batch_seq:
            raise
        return left


def _check_still_there(table: LakePath, known: Winner) -> None:
    """A log that was put back to an older state, or replaced, no longer has the batch that the ledger knows last."""
    commit = read_commit(table, known.version)
    if commit is None and latest_version(table) > known.version:
        return  # cleaned up by Delta; what follows it is checked by reading on
    winner = winner_of(commit, known.intent.app_id) if commit else None
    if winner is None or winner.token != known.token:
        msg = (
            f"{known.intent.table}: batch {known.batch_seq} was version {known.version}, but the log has "
            f"it there no more: {table} was put back to an older state, or replaced\nDo not write; restore its files "
            "and _delta_log from a backup that holds this version."
        )
        raise TornLogError(msg)


def _check_numbers(stream: Stream, known: Winner | None, new: tuple[Winner, ...], recorded: int | None) -> None:
    """A stream's numbers follow one another without a gap, from the last resolved one to what Delta has recorded."""
    numbers = [known.batch_seq if known else 0, *(winner.batch_seq for winner in new)]
    for before, after in pairwise(numbers):
        if after != before + 1:
            msg = (
                f"{stream.table}: batch {after} follows batch {before} in the log of stream {stream.name}: commits are "
                "missing\nDo not write; restore the missing files of _delta_log from a backup."
            )
            raise TornLogError(msg)
    if numbers[-1] < (recorded or 0):
        msg = (
            f"{stream.table}: Delta has recorded batch {recorded} of stream {stream.name}, but neither the ledger nor "
            "the log says what it was\nDo not write; restore ops/batches or the files of _delta_log from a backup."
        )
        raise TornLogError(msg)
