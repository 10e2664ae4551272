"""What the jobs of all layers share: commit batches, run the gate, report."""

from __future__ import annotations

import time
from collections.abc import Sequence

from millrace.contracts.counted import counted
from millrace.contracts.job.args import WRITER_OF_LAYER
from millrace.contracts.job.findings import merge_findings
from millrace.contracts.job.report import JobReport, RowCounts, reported_run, total
from millrace.control.changes.table_diff import lines_after_run
from millrace.control.gates.overrides import override_note
from millrace.control.gates.verification import verification_note
from millrace.control.ledger.commit_history import TableWrite
from millrace.control.ledger.resolution import table_id
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.batch import ONE_STREAM, Stream, Winner
from millrace.control.log.streams import stream_of
from millrace.control.quarantine.ageing import ageing_note
from millrace.errors import Outcome
from millrace_spark.layers.gate.gate import GateOutcome, run_gate
from millrace_spark.layers.own_table import FittingWork, batch_request
from millrace_spark.protocol.batches import BatchRequest, BatchResult, BatchWork, BatchWriter
from millrace_spark.runtime.context import JobContext


def commit_batch(context: JobContext, work: BatchWork, stream: Stream | None = None) -> BatchResult:
    """Commit the next batch of a stream by the protocol, if anything is new.

    If the run waited for another writer or lost a race, `ops.commits` gets an event.

    Args:
        context: the job's.
        work: plans, writes and closes the batch.
        stream: the stream; by default that of the job's interval.
    """
    request = batch_request(context, stream or stream_of(context.spec, context.args.interval_start))
    writer = batch_writer(context, request, work)
    context.ops.specs.record(context.spec, table_id(request.path))
    try:
        return writer.run(context.leases)
    finally:
        result = writer.result
        if result.lost or result.waited.holders:
            winner = result.winner if result.committed else None
            written = TableWrite(
                table=request.stream.table,
                stream=request.stream.name,
                run_id=request.run_id,
                at=context.now(),
                batch_seq=winner.batch_seq if winner else None,
                token=winner.token if winner else "",
                version=winner.version if winner else None,
                attempts=result.attempts,
                took_s=result.took_s,
                waited=result.waited,
                lost=tuple(result.lost),
            )
            context.ops.commits.record(written)


def newest_winner(results: Sequence[BatchResult]) -> Winner | None:
    """Return the batch with the newest version; None if there is none."""
    winners = [result.winner for result in results if result.winner]
    return max(winners, key=lambda batch: batch.version, default=None)


def batch_writer(context: JobContext, request: BatchRequest, work: BatchWork) -> BatchWriter:
    """Return what writes and closes the batches of a stream; it refuses a table that does not fit its spec."""
    fitting = FittingWork(context, work)
    return BatchWriter(request, fitting, context.ops.ledger, context.open_session, context.spec.conflicts)


def check_and_report(context: JobContext, results: Sequence[BatchResult]) -> JobReport:
    """Check the version that the last batch of a run made, and report all its batches.

    The gate runs in the same driver, right after the commit: Spark starts once, and nothing happens in between.
    """
    started = time.monotonic()
    spec, winner = context.spec, newest_winner(results)
    gate = run_gate(context, winner.version) if winner else None
    batch_s, gate_s = sum(result.took_s for result in results), time.monotonic() - started
    changes = lines_after_run(spec, results[0].previous, winner, context.ops)
    waiting = ageing_note(spec, context.paths, context.now())
    verdicts = gate.verdicts if gate else None
    overridden = (*override_note(spec.table, verdicts), *verification_note(spec.table, verdicts))
    did_something = [result for result in results if result.committed or result.finished]
    findings = merge_findings(result.findings for result in did_something)
    warnings = gate.warnings if gate else ()
    notes = (*context.notes, *changes, *findings.lines(spec.table), *warnings, *overridden, *waiting)
    rows = total(result.rows for result in did_something)
    return JobReport(
        **reported_run(WRITER_OF_LAYER[spec.layer], context.args),
        outcome=Outcome.COMMITTED if any(result.committed for result in results) else Outcome.NO_OP,
        message="; ".join((_message(spec.table, did_something or results, rows, gate), *context.remarks)),
        table_id=winner.intent.table_id if winner else "",
        stream=winner.intent.stream if winner else "",
        batch_seq=winner.batch_seq if winner else None,
        token=winner.token if winner else "",
        version=winner.version if winner else None,
        certified_version=gate.certified if gate else None,
        certified_moved=gate.has_new_certificate if gate else False,
        rows=rows,
        findings=findings,
        table_rows=table_rows(context.paths.table(spec.table), winner.version) if winner else None,
        attempts=sum(result.attempts for result in results),
        lost_races=tuple(race for result in results for race in result.lost),
        waited_s=round(sum(result.waited.seconds for result in results), 3),
        waited_for=", ".join(dict.fromkeys(result.waited.holders for result in results if result.waited.holders)),
        checks=gate.result.checks if gate else (),
        details=context.details,
        notes=notes,
        timings_s={"batch": round(batch_s, 3), "gate": round(gate_s, 3)},
    )


def _message(table: str, results: Sequence[BatchResult], rows: RowCounts, gate: GateOutcome | None) -> str:
    last = results[-1]
    if last.winner is None or gate is None:
        return f"{table}: nothing to load, and nothing was loaded before"
    stream = last.winner.intent.stream
    of_stream = "" if stream == ONE_STREAM else f" of stream {stream}"
    batch = f"batch {last.winner.batch_seq}{of_stream}, version {last.winner.version}"
    if not last.committed and not last.finished:
        made_by = f"{last.winner.intent.run_id} for the interval from {last.winner.intent.interval_start:%Y-%m-%d}"
        return f"{table}: nothing new since {batch}, made by {made_by}{f'. {gate.restore}' if gate.restore else ''}"
    earlier = f"{len(results)} batches, the last one " if len(results) > 1 else ""
    verdict = "certified" if gate.result.passed else f"{gate.result.refused} {gate.restore}".rstrip()
    dead = "" if last.committed else f" (committed by {last.winner.intent.run_id}, which died)"
    return (
        f"{table}: {earlier}{batch}{dead}: {counted(rows.read, 'row')} read, {rows.applied:,} applied, "
        f"{rows.unchanged:,} unchanged, {rows.superseded:,} superseded, {rows.quarantined:,} quarantined, "
        f"{rows.dropped:,} dropped, {rows.deleted:,} deleted; {verdict}"
    )
