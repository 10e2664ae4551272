"""Restore on refusal: the rows of the certified version are put back on top of a version that the gate refused.

One commit of delta-rs does it, with the next number of the table's stream as its txn, so that a writer that has planned
meanwhile is sent back to plan, and at exactly the version after the refused one, so that nothing newer is ever taken
back. What the batches above the certified version had consumed is read again by the next one (ADR 0018).
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
from include.control.log.delta_log import commits_after, commits_still_known, latest_version
from include.control.log.stored_tables import is_table, open_table
from include.control.storage.looks import new_looks
from include.errors import ConservationError, RestoreError, TornLogError
from include.paths import LakehousePaths

_SPARK_KEEPS_THE_LOG = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


@dataclass(frozen=True)
class Restore:
    """Puts back the certified rows of one table, for a run.

    Attributes:
        spec: the table's spec.
        interval: the interval of the run.
        run_id: the run whose version was refused, or that found it so.
        paths: the lakehouse.
        ledger: its ledger.
        gates: its gate results.
    """

    spec: AnySpec
    interval: Interval
    run_id: str
    paths: LakehousePaths
    ledger: Ledger
    gates: Gates

    def run(self, refused: GateResult) -> Winner:
        """Put them back on top of the refused version; the caller holds the lease of the table.

        Raises:
            RestoreError: `why_not` says why not, or another commit came first; nothing was changed.
            ConservationError: the new version has not as many rows as the one that it restores.
        """
        if reason := why_not(refused, self.paths, self.gates):
            raise RestoreError(f"{self.spec.table}: version {refused.version} was not taken back: {reason}")
        path, stream = self.paths.table(self.spec.table), Stream(self.spec.table)
        position = resolve(path, stream, self.ledger)
        intent = self._intent(stream, position)
        self.ledger.record_intent(intent)
        winner = self._commit(path, stream, refused.version, intent)
        self.ledger.record_committed([winner])
        self.ledger.record_closed(winner, close_restore(winner, self.paths))
        return winner

    def _commit(self, path: LakePath, stream: Stream, refused: int, intent: Intent) -> Winner:
        """Commit, then settle by the log alone: whatever was said, the token found there is the truth."""
        failure: CommitFailedError | None = None
        try:
            _restore(open_table(path, version=refused), _restored(intent), stream.app_id, intent)
        except CommitFailedError as error:
            failure = error
        winner = winner_at(path, stream.app_id, intent.batch_seq, after=refused)
        if winner is None or winner.token != intent.token:
            msg = f"{intent.table}: version {refused} was not taken back: another commit came right after it"
            raise RestoreError(msg) from failure
        return winner

    def _intent(self, stream: Stream, position: StreamPosition) -> Intent:
        """What takes back every batch above the certified version."""
        certified = int(self.gates.certified(stream.table) or 0)
        undone = _batches_above(self.paths.table(stream.table), certified)
        kept = self.ledger.last_recorded(stream.table, position.table_id, stream.name, certified)
        sources = kept.intent.sources if kept else BatchSources()
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
            sources=sources.restoring(certified, [intent.token for intent in undone]),
        )


def why_not(refused: GateResult, paths: LakehousePaths, gates: Gates) -> str:
    """Why a refused version cannot be taken back; empty when it can."""
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
        return f"the log of {path} has forgotten which batches came after version {certified}, which readers use"
    if replays := [intent.batch_seq for intent in undone if intent.sources.replay]:
        return f"batch {replays[0]} is a replay of quarantined rows, which would have to wait again"
    return ""


def taken_back_by(table: LakePath, version: int) -> int | None:
    """The version that took back what `version` had brought; None when nothing was taken back."""
    for commit in commits_still_known(table, version):
        restored = commit.metadata.get("sources", {}).get("restores")
        if restored is not None and restored < version:
            return commit.version
    return None


def close_restore(winner: Winner, paths: LakehousePaths) -> RowCounts:
    """Put the tables beside the restored one back as well, once; the rows by which it grew or shrank.

    What its undone batches had quarantined, or known as deleted, comes again with what is read again.

    Raises:
        ConservationError: the new version has not as many rows as the one that it restores.
    """
    intent, path = winner.intent, paths.table(winner.intent.table)
    restored = _restored(intent)
    layer, name = intent.table.split(".")
    _put_back(paths.quarantine(intent.table), f"{layer}_quarantine.{name}", intent)
    _put_back(paths.tombstones(intent.table, intent.table_id), f"{layer}_tombstones.{name}", intent)
    before, after = table_rows(path, winner.version - 1), table_rows(path, winner.version)
    if after != table_rows(path, restored):
        msg = (
            f"{intent.table} version {winner.version} was to have the rows of version {restored}, but has {after} "
            "rows\nThe version is not certified; compare the two before anything else."
        )
        raise ConservationError(msg)
    return RowCounts(inserted=max(after - before, 0), deleted=max(before - after, 0))


def _restored(intent: Intent) -> int:
    if intent.sources.restores is None:
        raise ValueError(f"batch {intent.batch_seq} of {intent.table} restores nothing")
    return intent.sources.restores


def _batches_above(table: LakePath, version: int) -> Sequence[Intent]:
    commits = (commit for commit in commits_after(table, version) if commit.metadata)
    intents = (Intent.model_validate(commit.metadata) for commit in commits)
    return [intent for intent in intents if intent.sources.restores is None]


def _put_back(path: LakePath, name: str, intent: Intent) -> None:
    """Take what undone batches wrote out of a table beside the restored one, unless that was done before."""
    if not is_table(path):
        return
    table, app_id = open_table(path), intent.app_id_beside(name)
    if (table.transaction_version(app_id) or 0) >= intent.batch_seq:
        return
    commits = commits_still_known(path, None)
    undone = [commit.version for commit in commits if commit.metadata.get("token") in intent.sources.undoes]
    if undone:
        _restore(table, min(undone) - 1, app_id, intent)


def _restore(table: DeltaTable, version: int, app_id: str, intent: Intent) -> None:
    """One commit right above the version that `table` was opened at, or none."""
    with new_looks():
        table.restore(
            version,
            commit_properties=CommitProperties(
                custom_metadata={"userMetadata": intent.user_metadata()},
                app_transactions=[Transaction(app_id, intent.batch_seq)],
            ),
            post_commithook_properties=_SPARK_KEEPS_THE_LOG,
        )
