"""Restores: put the rows of an earlier version back on top of a table, in one commit of delta-rs.

The commit has the next number of the table's stream as its txn, so that a writer that planned in the meantime must plan
again. It is exactly the version after the one that was looked at, so that it undoes nothing newer. The next batch reads
again what the batches after the earlier version had read (ADR 18, ADR 61).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError

from millrace.contracts.interval import Interval
from millrace.contracts.job.report import RowCounts
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.gates.gates import Gates
from millrace.control.gates.result import GateResult
from millrace.control.ledger.resolution import resolve, winner_at
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.batch import BatchSources, Intent, Repair, Stream, Winner, new_token
from millrace.control.log.delta_log import commits_after, latest_version, remaining_commits
from millrace.control.log.property_commits import foreign_features
from millrace.control.log.stored_tables import is_table, open_table
from millrace.control.ops_tables import OpsTables
from millrace.control.quarantine.events import Decision
from millrace.control.storage.read_cache import uncached_reads
from millrace.errors import ConservationError, RestoreError, TornLogError
from millrace.paths import LakehousePaths

_SPARK_KEEPS_THE_LOG = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


@dataclass(frozen=True)
class Restore:
    """A restore of a table.

    Attributes:
        spec: the table's spec.
        target: the version whose rows come back.
        newest: the newest version; the restore is the version after it, or nothing happens.
        interval: the interval of the batch, which is only a label.
        run_id: the run that restores.
        token: the token of the batch; by default a random one.
        repair: the repair that a person has asked for; None if the gate refused a later version.
        no_reload: whether the batches that are undone are not read again.
        beside: name of the quarantine and of the tombstones -> the version of a backup that comes back.
    """

    spec: AnySpec
    target: int
    newest: int
    interval: Interval
    run_id: str
    token: str = ""
    repair: Repair | None = None
    no_reload: bool = False
    beside: Mapping[str, int] = field(default_factory=dict)

    def run(self, ops: OpsTables) -> Winner:
        """Record the intent, commit the earlier rows, and close the batch; the caller holds the lease of the table.

        Raises:
            RestoreError: another commit came first; nothing was changed.
            ConservationError: the new version has not as many rows as the earlier one.
        """
        table, ledger = self.spec.table, ops.ledger
        path, stream = ops.paths.table(table), Stream(table)
        position = resolve(path, stream, ledger)
        restored = ledger.last_recorded(table, position.table_id, stream.name, self.target)
        last = position.last if self.no_reload else restored
        sources = last.intent.sources if last else BatchSources()
        # The ledger knows them all, also where the log lost commits between the version and the newest one.
        later = ledger.batches(table, position.table_id, self.target, self.newest, with_undone=True)
        intent = Intent(
            table=table,
            table_id=position.table_id,
            stream=stream.name,
            batch_seq=position.next_seq,
            token=self.token or new_token(),
            interval_start=self.interval.start,
            interval_end=self.interval.end,
            run_id=self.run_id,
            spec_hash=restored.intent.spec_hash if restored else self.spec.spec_hash,  # of the rows that come back
            sources=sources.at_same_position(
                restores=self.target,
                undoes=[batch.token for batch in later],
                restores_beside=dict(self.beside),
                repair=self.repair,
                no_reload=self.no_reload,
            ),
        )
        ledger.record_intent(intent)
        failure: CommitFailedError | None = None
        try:
            _restore(open_table(path, version=self.newest), self.target, stream.app_id, intent)
        except CommitFailedError as error:
            failure = error
        # The token in the log decides who won, whatever the commit reported.
        winner = winner_at(path, stream.app_id, intent.batch_seq, after=self.newest)
        if winner is None or winner.token != intent.token:
            cause = f"{table}: version {self.newest} was not undone: another commit came right after it"
            raise RestoreError(cause) from failure
        ledger.record_committed([winner])
        finish_restore(winner, ops)
        return winner


def undo_refused(refused: GateResult, spec: AnySpec, interval: Interval, run_id: str, ops: OpsTables) -> Winner:
    """Put the certified rows back on top of the refused version; the caller holds the lease of the table.

    The run `run_id` for `interval` is the one whose version was refused, or a later one.

    Raises:
        RestoreError: there is a `restore_obstacle`, or another commit came first; nothing was changed.
        ConservationError: the new version has not as many rows as the certified one.
    """
    if obstacle := restore_obstacle(refused, ops.paths, ops.gates):
        raise RestoreError(f"{spec.table}: version {refused.version} was not undone: {obstacle}")
    certified = int(ops.gates.certified(spec.table) or 0)
    return Restore(spec, certified, refused.version, interval, run_id).run(ops)


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
        undone = batches_above(path, certified)
    except TornLogError:
        return f"the log of {path} lacks commits after version {certified}, which readers use"
    if new := foreign_features(path):
        return f"the table has features with which no restore can write it: {', '.join(new)}"
    if deletions := [intent.batch_seq for intent in undone if intent.sources.deletes]:
        return f"batch {deletions[0]} deletes rows, which a person has decided"
    if replays := [intent.batch_seq for intent in undone if intent.sources.replay]:
        return f"batch {replays[0]} is a replay of quarantined rows, which would have to wait again"
    return ""


def finish_restore(winner: Winner, ops: OpsTables) -> None:
    """Do what a committed restore has still to do, and record that its batch is closed; a second call changes nothing.

    Raises:
        ConservationError: the new version has not as many rows as the version whose rows it puts back.
    """
    ops.ledger.record_closed(winner, close_restore(winner, ops))


def close_restore(winner: Winner, ops: OpsTables) -> RowCounts:
    """Rewind everything that is known of the rows, and return by how many rows the table grew or shrank.

    The quarantine and the tombstones are restored, too: the next batches read the sources again, and write their rows
    of these tables again. The ledger gets which batches are undone and redone, rows of undone replays wait again, and
    the new version gets the certificate of the version that comes back. A second call changes nothing.

    Raises:
        ConservationError: the new version has not as many rows as the version whose rows it puts back.
    """
    intent, paths = winner.intent, ops.paths
    table, path, target = intent.table, paths.table(intent.table), intent.sources.restores
    if target is None:
        raise ValueError(f"batch {intent.batch_seq} of {table} restores nothing")
    before, after = table_rows(path, winner.version - 1), table_rows(path, winner.version)
    if after != (expected := table_rows(path, target)):
        raise ConservationError(
            f"{table} version {winner.version} restores {expected} rows of version {target}, but has {after}",
            "The version is not certified; compare the two before anything else.",
        )
    for name, folder in secondary_tables(table, intent.table_id, paths).items():
        _restore_secondary(folder, name, intent)
    undone, redone = ops.ledger.rewound(table, intent.table_id, winner.version - 1, target)
    later = ops.ledger.batches(table, intent.table_id, target, winner.version - 1, with_undone=True)
    # Also of earlier restores: what version `target` had not read is read again, unless it was undone for good now.
    to_read = [batch for batch in later if batch.intent.sources.restores is None]
    ops.ledger.record_rewound(winner, undone if intent.sources.no_reload else to_read, redone)
    if replays := [batch.intent.sources.replay for batch in undone if batch.intent.sources.replay]:
        by = intent.sources.repair
        decision = Decision(by.said_by if by else "", by.why if by else "", intent.run_id)
        ops.quarantine.record_undone(winner, replays, decision)
    if ops.gates.certified(table) != winner.version and (certificate := ops.gates.certificate_of(table, target)):
        of_restore = {"version": winner.version, "batches": (f"{intent.stream}/{intent.batch_seq}",)}
        ops.gates.record(certificate.model_copy(update=of_restore))
    return RowCounts(inserted=max(after - before, 0), deleted=max(before - after, 0))


def secondary_tables(table: str, table_id: str, paths: LakehousePaths) -> dict[str, LakePath]:
    """Return the quarantine and the tombstones of a table, as far as they exist: name -> folder."""
    layer, name = table.split(".")
    folders = {
        f"{layer}_quarantine.{name}": paths.quarantine(table),
        f"{layer}_tombstones.{name}": paths.tombstones(table, table_id),
    }
    return {of: folder for of, folder in folders.items() if is_table(folder)}


def secondary_target(folder: LakePath, undoes: Collection[str]) -> int | None:
    """Return the version of a secondary table before the first write of batches that are undone; None without any."""
    commits = remaining_commits(folder, None)
    undone = [commit.version for commit in commits if commit.metadata.get("token") in undoes]
    return min(undone) - 1 if undone else None


def batches_above(table: LakePath, version: int) -> Sequence[Intent]:
    """Return the intents of the batches above `version`, also of restores.

    Raises:
        TornLogError: the log lacks a commit above `version`.
    """
    commits = (commit for commit in commits_after(table, version) if commit.metadata)
    return [Intent.model_validate(commit.metadata) for commit in commits]


def _restore_secondary(folder: LakePath, name: str, intent: Intent) -> None:
    """Remove from a secondary table what the undone batches wrote, unless that was done before."""
    table, app_id = open_table(folder), intent.secondary_app_id(name)
    if (table.transaction_version(app_id) or 0) >= intent.batch_seq:
        return
    target = intent.sources.restores_beside.get(name, secondary_target(folder, intent.sources.undoes))
    if target is not None:
        _restore(table, target, app_id, intent)


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
