"""Execute a restore exactly as its dry run has shown it, or end one that was interrupted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from millrace.catalog import Catalog
from millrace.clock import utc_now
from millrace.contracts.interval import utc_days
from millrace.contracts.restricted import RestrictedColumns
from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.leases.leases import Leases
from millrace.control.ledger.repairs import RESTORE, DecidedRepair, RepairEvent
from millrace.control.ledger.resolution import resolve, table_id
from millrace.control.log.batch import Repair, Stream, Winner
from millrace.control.maintenance.holding import keep_held_log
from millrace.control.ops_tables import OpsTables
from millrace.control.repair.interrupted import repair_token
from millrace.control.repair.restoring import Restore, finish_restore
from millrace.errors import RepairError
from millrace.overview.lineage.restricted import Restrictions
from millrace.paths import LakehousePaths
from millrace.reading.certified import certified
from millrace.repair.backups import Backup, open_backup
from millrace.repair.restore_plan import RestorePlan, plan_restore
from millrace.repair.restore_target import require_repairable, restore_target


@dataclass(frozen=True)
class RestoreRequest:
    """What a person asks for.

    Attributes:
        spec: the table's spec.
        version: the version whose rows come back.
        no_reload: whether the landing files of undone batches are not loaded again.
        restricted: the restricted columns of the table, whose values the plan does not show.
        backup: the backup that has what the table lost of the version; None without one.
    """

    spec: AnySpec
    version: int
    no_reload: bool
    restricted: RestrictedColumns
    backup: Backup | None = None

    def plan(self, catalog: Catalog, ops: OpsTables) -> RestorePlan:
        """Return what the restore would change now; raise the errors of `plan_restore`."""
        return plan_restore(
            self.spec, self.version, catalog, ops, self.restricted, no_reload=self.no_reload, backup=self.backup
        )

    def execute(self, decided: Repair, run_id: str, catalog: Catalog, ops: OpsTables, leases: Leases) -> Winner:
        """Restore the table as the plan with the id of the decision has shown it, or go on where that was interrupted.

        Raises:
            RepairError: no reason is stated; or the restore would do something else than what was shown.
            LeaseLostError: a run that writes the table did not end in time.
            MillraceError: as `plan_restore`, `Restore.run`.
        """
        table = self.spec.table
        if not decided.why.strip():
            raise RepairError(f"{table}: why is it restored?", "State the reason, for those who look at it later.")
        with leases.table(table):
            require_repairable(self.spec, catalog, ops)
            path, token = ops.paths.table(table), repair_token(table, decided.id)
            resolve(path, Stream(table), ops.ledger)  # records the commit of a driver that died after it
            winner = ops.ledger.batch_of(table, token)
            if winner is None:
                winner = self._begin(decided, run_id, token, catalog, ops)
            elif ops.ledger.closed_rows(winner) is None:
                finish_restore(winner, ops)
            keep_held_log(winner, ops, run_id)
            if known := ops.repairs.decided(table, decided.id):
                ops.repairs.record(RepairEvent.DONE, known, winner.intent.table_id, run_id, winner.version)
        ops.gates.publish(table)
        return winner

    def _begin(self, decided: Repair, run_id: str, token: str, catalog: Catalog, ops: OpsTables) -> Winner:
        table, plan = self.spec.table, self.plan(catalog, ops)
        if plan.id != decided.id:
            raise RepairError(
                f"{table}: the restore would do something else than what {decided.id} has shown; now it is {plan.id}",
                "The table, a table that reads it or a spec has changed since. Look at it again, without --execute.",
            )
        path = ops.paths.table(table)
        shown = json.dumps(plan.facts, default=str)
        record = DecidedRepair(table, RESTORE, decided, shown, plan.newest)
        ops.repairs.record(RepairEvent.DECIDED, record, table_id(path), run_id)
        beside = dict[str, int]()
        if self.backup:
            target = restore_target(self.spec, self.version, catalog, ops, no_reload=self.no_reload, backup=self.backup)
            folders = target.folders(ops.paths)
            self.backup.copy_back(folders)
            beside = {name: version for name, version in target.secondary.items() if name in folders}
        last = ops.ledger.last_recorded(table, plan.table_id, Stream(table).name, self.version)
        today = utc_now().date()
        interval = last.intent.interval if last else utc_days(today, today)[0]
        newest, no_reload = plan.newest, self.no_reload
        restore = Restore(self.spec, self.version, newest, interval, run_id, token, decided, no_reload, beside)
        return restore.run(ops)


def asked_copy_back(table: str, folder: str, catalog: Catalog, *, no_reload: bool) -> RestoreRequest:
    """Return the restore to the version that a backup has, of which a person asks for.

    Args:
        table: the table.
        folder: the folder of the backup, or its place in a bucket.
        catalog: the specs.
        no_reload: whether the landing files of undone batches are not loaded again.

    Raises:
        SpecError: the spec is wrong, or there is no such table.
        RepairError: there is no complete backup of the table.
    """
    spec, backup = catalog.spec(table), open_backup(table, folder)
    return RestoreRequest(spec, backup.manifest.version, no_reload, Restrictions(catalog.specs).of(table), backup)


def asked_restore(table: str, to: str, catalog: Catalog, paths: LakehousePaths, *, no_reload: bool) -> RestoreRequest:
    """Return the restore that a person asks for.

    Args:
        table: the table.
        to: a version, or a time, by default in UTC: then the version that readers used at that time.
        catalog: the specs.
        paths: the lakehouse.
        no_reload: whether the landing files of undone batches are not loaded again.

    Raises:
        SpecError: the spec is wrong, or there is no such table.
        NotReadyError: no version was certified at the time.
        RepairError: `to` is neither a version nor a time.
    """
    spec, restricted = catalog.spec(table), Restrictions(catalog.specs).of(table)
    if to.isdecimal():
        return RestoreRequest(spec, int(to), no_reload, restricted)
    try:
        at = datetime.fromisoformat(to)
    except ValueError as error:
        cause = f"{table}: {to!r} is neither a version nor a time"
        raise RepairError(cause, "Write a version such as 12, or a time such as 2026-11-20T10:00 (UTC).") from error
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return RestoreRequest(spec, certified(table, paths.root, at=at).version, no_reload, restricted)
