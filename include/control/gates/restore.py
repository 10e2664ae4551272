"""Restore on refusal: put the rows of the certified version back on top of a version that the gate refused.

delta-rs does it in one commit. The commit has the next number of the table's stream as its txn, so that a writer that
planned in the meantime must plan again. It is exactly the version after the refused one, so that it undoes nothing
newer. The next batch reads again what the batches above the certified version had read (ADR 18).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError

from include.contracts.interval import Interval
from include.contracts.job.report import RowCounts
from include.contracts.lake_path import LakePath
from include.contracts.spec.table_spec import AnySpec
from include.control.gates.gates import Gates
from include.control.gates.result import GateResult
from include.control.ledger.ledger import Ledger
from include.control.ledger.measures import table_rows
from include.control.ledger.resolution import resolve, winner_at
from include.control.log.batch import BatchSources, Intent, Stream, StreamPosition, Winner, new_token
from include.control.log.delta_log import commits_after, latest_version, remaining_commits
from include.control.log.stored_tables import is_table, open_table
from include.control.storage.read_cache import uncached_reads
from include.errors import ConservationError, RestoreError, TornLogError
from include.paths import LakehousePaths

_SPARK_KEEPS_THE_LOG = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


@dataclass(frozen=True)
class Restore:
    """Puts the certified rows of one table back, for the run whose version was refused, or a later run."""

    spec: AnySpec
    interval: Interval
    run_id: str
    paths: LakehousePaths
    ledger: Ledger
    gates: Gates

    def run(self, refused: GateResult) -> Winner:
        """Put the rows back on top of the refused version; the caller holds the lease of the table.

        Raises:
            RestoreError: there is a `restore_obstacle`, or another commit came first; nothing was changed.
            ConservationError: the new version has not as many rows as the certified one.
        """
        if obstacle := restore_obstacle(refused, self.paths, self.gates):
            raise RestoreError(f"{self.spec.table}: version {refused.version} was not undone: {obstacle}")
        path, stream = self.paths.table(self.spec.table), Stream(self.spec.table)
        intent = self._intent(stream, resolve(path, stream, self.ledger))
        self.ledger.record_intent(intent)
        winner = self._commit(path, stream, refused.version, intent)
        self.ledger.record_committed([winner])
        self.ledger.record_closed(winner, close_restore(winner, self.paths))
        return winner

    def _intent(self, stream: Stream, position: StreamPosition) -> Intent:
        """Return the intent of a batch that undoes every batch above the certified version."""
        certified = int(self.gates.certified(stream.table) or 0)
        undone = _batches_above(self.paths.table(stream.table), certified)
        last = self.ledger.last_recorded(stream.table, position.table_id, stream.name, certified)
        sources = last.intent.sources if last else BatchSources()
        return Intent(
            table=stream.table,
            table_id=position.table_id,
            stream=stream.name,
            batch_seq=position.next_seq,
            token=new_token(),
            interval_start=self.interval.start,
            interval_end=self.interval.end,
            run_id=self.run_id,
            spec_hash=self.spec.spec_hash,
            sources=sources.for_restore(certified, [intent.token for intent in undone]),
        )

    def _commit(self, path: LakePath, stream: Stream, refused: int, intent: Intent) -> Winner:
        """Commit, and return the winner by the token in the log, whatever the commit reported."""
        failure: CommitFailedError | None = None
        try:
            _restore(open_table(path, version=refused), _certified_version(intent), stream.app_id, intent)
        except CommitFailedError as error:
            failure = error
        winner = winner_at(path, stream.app_id, intent.batch_seq, after=refused)
        if winner is None or winner.token != intent.token:
            cause = f"{intent.table}: version {refused} was not undone: another commit came right after it"
            raise RestoreError(cause) from failure
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
    certified = _certified_version(intent)
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


def _certified_version(intent: Intent) -> int:
    if intent.sources.restores is None:
        raise ValueError(f"batch {intent.batch_seq} of {intent.table} restores nothing")
    return intent.sources.restores


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
