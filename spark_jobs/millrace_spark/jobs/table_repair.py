"""Delete or replace the rows of a table that a condition names, exactly as a dry run has shown it."""

from __future__ import annotations

import json

from millrace.contracts.counted import counted
from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport, RowCounts, reported_run
from millrace.contracts.job.requests import RepairRequest
from millrace.control.ledger.repairs import DecidedRepair, RepairEvent
from millrace.control.ledger.resolution import resolve, table_id
from millrace.control.log.batch import Repair, Stream, Winner
from millrace.control.log.delta_log import latest_version
from millrace.control.repair.interrupted import repair_token
from millrace.errors import MillraceError, Outcome, RepairError
from millrace.repair.row_repair import RowRepairPlan, asked_row_repair
from millrace_spark.layers.gate.gate import GateOutcome, run_gate
from millrace_spark.layers.repair.deletion import Deletion, delete_where
from millrace_spark.layers.repair.row_repairs import RowRepair
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import main


def run(context: JobContext) -> JobReport:
    """Report what the repair would change; or make it under the lease of the table, and check the new version.

    Raises:
        RepairError: the table cannot be repaired so, or the repair would do something else than what was shown.
        ConflictError: other writers won until the limits were reached.
    """
    table, ops = context.spec.table, context.ops
    if context.args.request is None:
        raise MillraceError(f"{table}: the job needs --request, which names the rows")
    request = RepairRequest.load(context.args.request)
    asked = asked_row_repair(table, request, context.catalog, ops, context.restricted(table))
    repair = RowRepair(context, asked)
    if context.args.dry_run:
        plan = _plan(repair)
        of_run = reported_run(Job.TABLE_REPAIR, context.args)
        return JobReport(**of_run, outcome=Outcome.NO_OP, message="\n".join(plan.lines()), details=plan.facts)
    if not request.why.strip():
        raise RepairError(f"{table}: why is it repaired?", "State the reason, for those who look at it later.")
    with context.leases.table(table):
        winner = _repair(repair, Repair(id=request.plan, said_by=request.said_by, why=request.why))
    gate = run_gate(context, winner.version)
    if decided := ops.repairs.decided(table, request.plan):
        ops.repairs.record(RepairEvent.DONE, decided, winner.intent.table_id, context.args.run_id, winner.version)
    return _report(context, winner, gate)


def _plan(repair: RowRepair) -> RowRepairPlan:
    path = repair.context.paths.table(repair.asked.spec.table)
    with repair.context.reading_session({}) as session:
        return repair.plan(session, latest_version(path), table_id(path))


def _repair(repair: RowRepair, decided: Repair) -> Winner:
    """Make the repair, or go on where it was interrupted; the caller holds the lease of the table."""
    context, request = repair.context, repair.asked.request
    table, ops = context.spec.table, context.ops
    token, stream = repair_token(table, decided.id), Stream(table)
    resolve(context.paths.table(table), stream, ops.ledger)  # records the commit of a driver that died after it
    newest = None
    if ops.ledger.batch_of(table, token) is None:
        plan = _plan(repair)
        if plan.id != decided.id:
            raise RepairError(
                f"{table}: the repair would do something else than what {decided.id} has shown; now it is {plan.id}",
                "The table, a table that reads it or a spec has changed since. Look at it again, without --execute.",
            )
        record = DecidedRepair(table, plan.action, decided, json.dumps(plan.facts, default=str), plan.newest)
        ops.repairs.record(RepairEvent.DECIDED, record, plan.table_id, context.args.run_id)
        newest = plan.newest
    delete, rows = delete_where(request.where), repair.new_rows if request.source else None
    return Deletion(context, stream, request.where, delete, token, decided, newest, rows).run()


def _report(context: JobContext, winner: Winner, gate: GateOutcome) -> JobReport:
    table, rows = context.spec.table, context.ops.ledger.closed_rows(winner) or RowCounts()
    counts = f"{counted(rows.deleted, 'row')} deleted, {rows.inserted:,} inserted"
    passed = gate.result.passed
    verdict = "certified" if passed else f"{gate.result.refused} {gate.restore}".rstrip()
    return JobReport(
        **reported_run(Job.TABLE_REPAIR, context.args),
        outcome=Outcome.COMMITTED if passed else Outcome.GATE_FAILED,
        message=f"{table}: batch {winner.batch_seq}, version {winner.version}: {counts}; {verdict}",
        table_id=winner.intent.table_id,
        stream=winner.intent.stream,
        batch_seq=winner.batch_seq,
        token=winner.token,
        version=winner.version,
        certified_version=gate.certified,
        certified_moved=gate.has_new_certificate,
        rows=rows,
        checks=gate.result.checks,
        notes=gate.warnings,
    )


if __name__ == "__main__":
    main(Job.TABLE_REPAIR, run)
