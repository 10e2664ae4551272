"""Check the newest rows of a table, and certify or refuse their version."""

from __future__ import annotations

from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport, reported_run
from millrace.control.gates.overrides import override_note
from millrace.control.gates.verification import verification_note
from millrace.control.log.delta_log import newest_change
from millrace.control.log.streams import NONE, concurrency_of
from millrace.control.planning.complete_batches import unclosed_batches
from millrace.control.planning.stream_positions import stream_position
from millrace.errors import GateFailedError, NotReadyError, Outcome
from millrace_spark.layers.gate.gate import run_gate
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import main


def run(context: JobContext) -> JobReport:
    """Check the last batch's version by the spec's table rules; of a table without batches, the newest other rows.

    Raises:
        NotReadyError: there is no table to check, or it has a batch that its run has not completed.
        GateFailedError: its last batch was refused, and the table restored.
    """
    table, path = context.spec.table, context.paths.table(context.spec.table)
    position = stream_position(context.spec, context.paths, context.ops.ledger)
    if position is None:
        raise NotReadyError(f"{table}: there is no table to check; run the task that writes the table first")
    last = position.last
    version, sources = last.version if last else newest_change(path), position.last_sources
    if (restored := sources.restores) is not None and sources.repair is None:
        raise GateFailedError(
            f"{table}: there is nothing to check: the versions after {restored} were refused, and version {version} "
            "restored its rows\nRun the task that writes the table: it reads the refused batches again."
        )
    ledger, gates = context.ops.ledger, context.ops.gates
    several = concurrency_of(context.spec) != NONE
    if open_batches := unclosed_batches(table, version, context.paths, ledger, gates) if several else []:
        first = open_batches[0].intent
        raise NotReadyError(
            f"{table}: batch {first.batch_seq} of stream {first.stream} is not complete, and version {version} has it",
            f"Its run {first.run_id} is still at work, or died: run the interval from {first.interval_start:%Y-%m-%d} "
            "again.",
        )
    gate = run_gate(context, version)
    return JobReport(
        **reported_run(Job.QUALITY_GATE, context.args),
        outcome=Outcome.NO_OP if gate.result.passed else Outcome.GATE_FAILED,
        message=f"{gate.result.refused} {gate.restore}".strip() or f"{table} version {version} is certified",
        table_id=position.table_id,
        stream=last.intent.stream if last else "",
        batch_seq=last.batch_seq if last else None,
        token=last.token if last else "",
        version=version,
        certified_version=gate.certified,
        certified_moved=gate.has_new_certificate,
        checks=gate.result.checks,
        notes=(*gate.warnings, *override_note(table, gate.verdicts), *verification_note(table, gate.verdicts)),
    )


if __name__ == "__main__":
    main(Job.QUALITY_GATE, run)
