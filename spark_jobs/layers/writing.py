"""What the jobs of all layers have in common: commit the batch, run the gate, report."""

from __future__ import annotations

import time

from include.contracts.job_args import WRITER_OF_LAYER
from include.contracts.job_report import JobReport, RowFates
from include.control.batch import Stream
from include.control.conservation import table_rows
from include.control.planner import spec_change_note
from include.errors import Outcome
from spark_jobs.delta_io.batches import BatchRequest, BatchResult, BatchWork, BatchWriter
from spark_jobs.layers.gate import GateOutcome, run_gate
from spark_jobs.runtime.context import JobContext


def write_batch(context: JobContext, work: BatchWork) -> JobReport:
    """Commit one batch by the protocol, judge the version it made, and report both.

    The gate runs in the same driver, right after the commit: no second start-up, and nothing in between.
    """
    started = time.monotonic()
    request = BatchRequest(
        path=context.paths.table(context.spec.table),
        stream=Stream(context.spec.table),
        interval=context.args.interval,
        run_id=context.args.run_id,
        spec_hash=context.spec.spec_hash,
    )
    result = BatchWriter(request, work, context.ledger, context.open_session).run(context.leases)
    written = time.monotonic()
    gate = run_gate(context, result.winner.version) if result.winner else None
    timings = {"batch": round(written - started, 3), "gate": round(time.monotonic() - written, 3)}
    return _report(context, result, gate, timings)


def _report(context: JobContext, result: BatchResult, gate: GateOutcome | None, timings: dict[str, float]) -> JobReport:
    winner, spec = result.winner, context.spec
    notes = (*spec_change_note(spec, result.previous), *(gate.warnings if gate else ()))
    return JobReport(
        job=WRITER_OF_LAYER[spec.layer].value,
        table=spec.table,
        outcome=Outcome.COMMITTED if result.committed else Outcome.NO_OP,
        message=_message(spec.table, result, gate),
        interval=context.args.interval,
        run_id=context.args.run_id,
        table_id=winner.intent.table_id if winner else "",
        stream=winner.intent.stream if winner else "",
        batch_seq=winner.batch_seq if winner else None,
        token=winner.token if winner else "",
        version=winner.version if winner else None,
        certified_version=gate.certified if gate else None,
        certified_moved=gate.moved if gate else False,
        rows=result.rows if result.committed or result.finished else RowFates(),
        table_rows=table_rows(context.paths.table(spec.table), winner.version) if winner else None,
        attempts=result.attempts,
        conflicts=tuple(result.conflicts),
        waited_s=round(result.waited_s, 3),
        checks=gate.result.checks if gate else (),
        notes=notes,
        timings_s=timings,
    )


def _message(table: str, result: BatchResult, gate: GateOutcome | None) -> str:
    if result.winner is None or gate is None:
        return f"{table}: nothing to load, and nothing was ever loaded"
    batch = f"batch {result.winner.batch_seq}, version {result.winner.version}"
    if not result.committed and not result.finished:
        made_by = f"{result.winner.intent.run_id} for the interval from {result.winner.intent.interval_start:%Y-%m-%d}"
        return f"{table}: nothing new since {batch}, made by {made_by}"
    rows = result.rows
    verdict = "certified" if gate.result.passed else gate.result.refused
    dead = "" if result.committed else f" (committed by {result.winner.intent.run_id}, which died)"
    return (
        f"{table}: {batch}{dead}: {rows.read} rows read, {rows.applied} applied, {rows.unchanged} unchanged, "
        f"{rows.superseded} superseded, {rows.quarantined} quarantined, {rows.dropped} dropped; {verdict}"
    )
