"""Restore on refusal: put the rows of the certified version back on top of a version that the gate refused.

delta-rs does it in one commit. The commit has the next number of the table's stream as its txn, so that a writer that
planned in the meantime must plan again. It is exactly the version after the refused one, so that it undoes nothing
newer. The next batch reads again what the batches above the certified version had read (ADR 18).
"""

from __future__ import annotations

from collections.abc import Sequence

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError

from millrace.contracts.interval import Interval
from millrace.contracts.job.report import RowCounts
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.gates.gates import Gates
from millrace.control.gates.result import GateResult
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import resolve, winner_at
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.batch import BatchSources, Intent, Stream, Winner, new_token
from millrace.control.log.delta_log import commits_after, latest_version, remaining_commits
from millrace.control.log.stored_tables import is_table, open_table
from millrace.control.storage.read_cache import uncached_reads
from millrace.errors import ConservationError, RestoreError, TornLogError
from millrace.paths import LakehousePaths

_SPARK_KEEPS_THE_LOG = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


def undo_refused(
    refused: GateResult,
    spec: AnySpec,
    interval: Interval,
    run_id: str,
    paths: LakehousePaths,
    ledger: Ledger,
    gates: Gates,
) -> Winner:
    """Put the certified rows back on top of the refused version; the caller holds the lease of the table.

    The run `run_id` for `interval` is the one whose version was refused, or a later one.

    Raises:
        RestoreError: there is a `restore_obstacle`, or another commit came first; nothing was changed.
        ConservationError: the new version has not as many rows as the certified one.
    """
    if obstacle := restore_obstacle(refused, paths, gates):
        raise RestoreError(f"{spec.table}: version {refused.version} was not undone: {obstacle}")
    path, stream = paths.table(spec.table), Stream(spec.table)
    position = resolve(path, stream, ledger)
    certified = int(gates.certified(spec.table) or 0)
    undone = _batches_above(path, certified)
    last = ledger.last_recorded(spec.table, position.table_id, stream.name, certified)
    sources = last.intent.sources if last else BatchSources()
    intent = Intent(
        table=spec.table,
        table_id=position.table_id,
        stream=stream.name,
        batch_seq=position.next_seq,
        token=new_token(),
        interval_start=interval.start,
        interval_end=interval.end,
        run_id=run_id,
        spec_hash=last.intent.spec_hash if last else spec.spec_hash,  # of the rows that come back
        sources=sources.at_same_position(restores=certified, undoes=[batch.token for batch in undone]),
    )
    ledger.record_intent(intent)
    failure: CommitFailedError | None = None
    try:
        _restore(open_table(path, version=refused.version), certified, stream.app_id, intent)
    except CommitFailedError as error:
        failure = error
    # The token in the log decides who won, whatever the commit reported.
    winner = winner_at(path, stream.app_id, intent.batch_seq, after=refused.version)
    if winner is None or winner.token != intent.token:
        cause = f"{spec.table}: version {refused.version} was not undone: another commit came right after it"
        raise RestoreError(cause) from failure
    ledger.record_committed([winner])
    ledger.record_closed(winner, close_restore(winner, paths))
    return winner


def restore_obstacle(refused: GateResult, paths: LakehousePaths, gates: Gates) -> str:
    """Return why a refused version cannot be undone by a restore; empty if it can."""
    path, certified = paths.table(refused.table), gates.certified(refused.table)
    if certified is None:
        return "no version of the table was ever certified"
    if certified >= refused.version:
        return f"readers use version {certified}, a later one or the same rows"
    if (newest := latest_version(path)) != refused.version:
        return f"version {newest} came after it"
    try:
        undone = _batches_above(path, certified)
    except TornLogError:
        return f"the log of {path} lacks commits after version {certified}, which readers use"
    if replays := [intent.batch_seq for intent in undone if intent.sources.replay]:
        return f"batch {replays[0]} is a replay of quarantined rows, which would have to wait again"
    return ""


def restoring_version(table: LakePath, version: int) -> int | None:
    """Return the version that undid `version` by a restore; None if there is none."""
    for commit in remaining_commits(table, version):
        restored = commit.metadata.get("sources", {}).get("restores")
        if restored is not None and restored < version:
            return commit.version
    return None


def close_restore(winner: Winner, paths: LakehousePaths) -> RowCounts:
    """Restore the quarantine and the tombstones too, and return by how many rows the table grew or shrank.

    The next batches read the sources again, and write the rows of these secondary tables again. A second call changes
    nothing.

    Raises:
        ConservationError: the new version has not as many rows as the version whose rows it puts back.
    """
    intent, path = winner.intent, paths.table(winner.intent.table)
    certified = intent.sources.restores
    if certified is None:
        raise ValueError(f"batch {intent.batch_seq} of {intent.table} restores nothing")
    layer, name = intent.table.split(".")
    _restore_secondary(paths.quarantine(intent.table), f"{layer}_quarantine.{name}", intent)
    _restore_secondary(paths.tombstones(intent.table, intent.table_id), f"{layer}_tombstones.{name}", intent)
    before, after = table_rows(path, winner.version - 1), table_rows(path, winner.version)
    if after != (expected := table_rows(path, certified)):
        raise ConservationError(
            f"{intent.table} version {winner.version} restores {expected} rows of version {certified}, but has {after}",
            "The version is not certified; compare the two before anything else.",
        )
    return RowCounts(inserted=max(after - before, 0), deleted=max(before - after, 0))


def _batches_above(table: LakePath, version: int) -> Sequence[Intent]:
    """Return the intents of the batches above `version`, without restores.

    Raises:
        TornLogError: the log lacks a commit above `version`.
    """
    commits = (commit for commit in commits_after(table, version) if commit.metadata)
    intents = (Intent.model_validate(commit.metadata) for commit in commits)
    return [intent for intent in intents if intent.sources.restores is None]


def _restore_secondary(path: LakePath, name: str, intent: Intent) -> None:
    """Remove from a secondary table what the undone batches wrote, unless that was done before."""
    if not is_table(path):
        return
    table, app_id = open_table(path), intent.secondary_app_id(name)
    if (table.transaction_version(app_id) or 0) >= intent.batch_seq:
        return
    commits = remaining_commits(path, None)
    undone = [commit.version for commit in commits if commit.metadata.get("token") in intent.sources.undoes]
    if undone:
        _restore(table, min(undone) - 1, app_id, intent)


def _restore(table: DeltaTable, version: int, app_id: str, intent: Intent) -> None:
    """Restore `version` by one commit right after the version that `table` was opened at, or fail."""
    with uncached_reads():
        table.restore(
            version,
            commit_properties=CommitProperties(
                custom_metadata={"userMetadata": intent.user_metadata()},
                app_transactions=[Transaction(app_id, intent.batch_seq)],
            ),
            post_commithook_properties=_SPARK_KEEPS_THE_LOG,
        )
