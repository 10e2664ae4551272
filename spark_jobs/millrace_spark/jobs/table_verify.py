"""Verify a gold table: compare its certified version with a computation from scratch, and refuse it if they differ."""

from __future__ import annotations

from millrace.contracts.counted import counted
from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport, reported_run
from millrace.contracts.spec.table_spec import GoldSpec
from millrace.control.gates.verification import record_verification
from millrace.control.maintenance.verification_due import record_verified
from millrace.errors import BadInputError, NotReadyError, Outcome
from millrace_spark.layers.gold.verifying import Comparison, compare_with_sources
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import main


def run(context: JobContext) -> JobReport:
    """Compare all groups of the certified version, or those of a sample; record a difference as a refusal.

    Raises:
        BadInputError: the table is not computed from its sources alone, or a source was replaced by another table.
        NotReadyError: no version is certified, the spec has changed since, or a version is not readable any more.
    """
    spec, gates = context.spec, context.ops.gates
    if not isinstance(spec, GoldSpec):
        raise BadInputError(
            f"{spec.table} is merged from events, and is not compared with them",
            "Only gold tables, and silver tables with a query, are computed again from their sources.",
        )
    context.catalog.require_sound_sources(spec)
    verdicts = gates.verdicts(spec.table)
    if verdicts is None or verdicts.certified is None:
        raise NotReadyError("there is no certified version to verify", f"Run {spec.table} and its gate first.")
    if context.args.dry_run:
        return JobReport(
            **reported_run(Job.TABLE_VERIFY, context.args),
            outcome=Outcome.NO_OP,
            message=f"{spec.table}: would compare version {verdicts.certified} with its sources",
            certified_version=verdicts.certified,
        )
    comparison = compare_with_sources(context, verdicts, context.args.sample)
    failure = comparison.failure
    refused = record_verification(spec, verdicts, failure, gates, is_whole=not context.args.sample)
    if not refused:
        record_verified(spec.table, verdicts, comparison.sources, context.ops)
    details = {name: getattr(comparison, name) for name in ("groups", "differing", "sources", "left_out")}
    left_out = (f"{spec.table}: {name} was not compared: {why}" for name, why in comparison.left_out.items())
    return JobReport(
        **reported_run(Job.TABLE_VERIFY, context.args),
        outcome=Outcome.GATE_FAILED if refused else Outcome.NO_OP,
        message=refused or _message(spec, comparison, context.args.sample),
        table_id=verdicts.table_id,
        version=comparison.version,
        certified_version=verdicts.certified,
        checks=(failure,) if failure else (),
        details={**details, "differences": list(comparison.differences), "sample": context.args.sample},
        notes=(*left_out, *(f"{spec.table}: {cause}" for cause in comparison.causes)),
    )


def _message(spec: GoldSpec, comparison: Comparison, sample: int) -> str:
    of = f" of {counted(sample, 'value')} of {comparison.sampled_by}" if comparison.sampled_by else ""
    sources = ", ".join(f"{table} version {version}" for table, version in comparison.sources.items())
    groups = counted(comparison.groups, "group")
    return f"{spec.table} version {comparison.version}: {groups}{of} compared, all as computed from {sources}"


if __name__ == "__main__":
    main(Job.TABLE_VERIFY, run)
