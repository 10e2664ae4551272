"""The gate: check one exact version of a table, certify or refuse it, and restore the version before if asked."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from millrace.control.gates.judged_figures import JudgedFigures
from millrace.control.gates.restore import undo_refused
from millrace.control.gates.result import GateResult
from millrace.control.gates.verdicts import Verdicts
from millrace.control.gates.verification import failed_verification, wrong_rows_way_out
from millrace.control.ledger.resolution import table_id
from millrace.control.log.delta_log import remaining_commits
from millrace.control.log.streams import NONE, concurrency_of
from millrace.errors import RestoreError
from millrace_spark.delta_io.reads import read_version
from millrace_spark.layers.gate.changed_rows import JudgedVersion, change_since, next_figures, rules_digest
from millrace_spark.layers.gate.version_facts import comparable_version, other_tables, required_tables, version_facts
from millrace_spark.quality.fused.one_pass import GATE_CONF
from millrace_spark.quality.suites import CheckedRules, check_rules
from millrace_spark.quality.verdicts.carried_figures import RULE as CARRIED
from millrace_spark.quality.verdicts.carried_figures import carried_way_out
from millrace_spark.quality.verdicts.comparable_version import IN_TABLE
from millrace_spark.quality.verdicts.restricted_rules import RestrictedRules
from millrace_spark.quality.verdicts.verdict import refusal_text, warnings_of
from millrace_spark.runtime.context import JobContext

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GateOutcome:
    """The result of a gate, and the version that readers may use now.

    Attributes:
        result: the result for the checked version.
        verdicts: the state of the table after all its results.
        has_new_certificate: whether the result certified a newer version.
        warnings: one line for each rule that only warns and failed.
        restore: whether a refused version was restored, or why not; empty if the spec does not ask for it.
    """

    result: GateResult
    verdicts: Verdicts | None
    has_new_certificate: bool
    warnings: tuple[str, ...] = ()
    restore: str = ""

    @property
    def certified(self) -> int | None:
        """The version that readers may use."""
        return self.verdicts.certified if self.verdicts else None


def run_gate(context: JobContext, version: int) -> GateOutcome:
    """Check `version`, unless the same rules have checked it before, and record the result.

    A refused version is restored if the spec says so. The gates of a table with several streams take turns, so that one
    certificate covers the batches of all runs that were waiting.

    Raises:
        LeaseLostError: the gate of another run did not end in time.
    """
    if concurrency_of(context.spec) == NONE:
        return _check_and_record(context, version)
    with context.leases.stream(context.spec.table, "gate"):
        verdicts = context.ops.gates.verdicts(context.spec.table)
        # A version below the certified one lacks rows of other streams, which its rules would miss.
        certified = verdicts.passed[-1].version if verdicts and verdicts.passed else version
        return _check_and_record(context, max(version, certified))


def _check_and_record(context: JobContext, version: int) -> GateOutcome:
    """Check `version`, unless the same rules have checked it before, record the result, and restore if asked."""
    table, gates = context.spec.table, context.ops.gates
    verdicts = gates.verdicts(table)
    before = verdicts.certified if verdicts else None
    recorded = gates.result_from(verdicts, table, version, context.spec.suite_hash)
    if recorded is None:
        result, figures = _check(context, version, verdicts)
        verdicts = gates.record(result, figures)
    else:
        result = recorded
        gates.publish(table)  # a job that died after a rebuild or a restore has not
    warnings = warnings_of(table, version, result.checks)
    is_new = recorded is None and result.passed and version > (-1 if before is None else before)
    if result.passed:
        return GateOutcome(result, verdicts, is_new, warnings)
    restore = _restore_certified_rows(context, result)
    return GateOutcome(result, gates.verdicts(table), is_new, warnings, restore)


def _check(context: JobContext, version: int, verdicts: Verdicts | None) -> tuple[GateResult, JudgedFigures | None]:
    """Return the result for a version, and the figures by which the next version can be checked."""
    spec, path = context.spec, context.paths.table(context.spec.table)
    certified = verdicts.certified if verdicts else None
    facts, others = version_facts(context, version, certified), other_tables(context)
    checked = CheckedRules()
    figures: JudgedFigures | None = None
    if spec.table_rules:
        with context.reading_session(GATE_CONF) as session:
            frame = read_version(session, path, version)
            compared = comparable_version(context, session, version, facts, others)
            digest, required = rules_digest(spec, frame.schema), required_tables(context, others)
            judged = JudgedVersion(path, version, digest, facts[IN_TABLE], required)
            last, settings = context.ops.gates.judged_figures(spec.table), context.settings
            change = change_since(last, judged, session, settings.gate_reads, settings.gate_proof_after)
            restricted = RestrictedRules(context.restricted(spec.table), context.restricted)
            checked = check_rules(frame, spec.table_rules, compared, change, restricted)
            figures = next_figures(judged, change, checked.lasting)
    found_wrong = failed_verification(verdicts, path, version)
    checks = (found_wrong, *checked.checks) if found_wrong else checked.checks
    refused = refusal_text(spec.table, version, checks, certified, context.args.interval)
    if found_wrong:
        refused += f"\n{wrong_rows_way_out(spec.table)}"
    if any(check.rule == CARRIED for check in checks):
        refused += f"\n{carried_way_out(spec.table, version)}"
    commits = remaining_commits(path, certified)
    batches = [commit.metadata for commit in commits if commit.metadata and commit.version <= version]
    result = GateResult(
        table=spec.table,
        table_id=table_id(path),
        version=version,
        suite_hash=spec.suite_hash,
        passed=not refused,
        checks=checks,
        batches=tuple(f"{batch['stream']}/{batch['batch_seq']}" for batch in batches),
        refused=refused and refused + _earlier_refusal(context, version, certified),
        facts=facts,
        compared=others,
    )
    return result, figures


def _earlier_refusal(context: JobContext, version: int, certified: int | None) -> str:
    """Return a text on the version that a person let pass, and on the first refused version since the certified one."""
    table, gates = context.spec.table, context.ops.gates
    override = gates.override_in_force(table)
    text = f" Version {override.version} was {override.override}; that covers no later version." if override else ""
    first = gates.first_refusal(table, above=-1 if certified is None else certified)
    if first is None or first.version == version:
        return text
    last_batch = first.batches[-1] if first.batches else "?"
    return f"{text} First refused at version {first.version} (batch {last_batch})."


def _restore_certified_rows(context: JobContext, refused: GateResult) -> str:
    """Commit the certified rows on top of the refused version; return one line that says so, or why this failed.

    The line is empty, and nothing is committed, if the spec keeps refused versions.
    """
    spec = context.spec
    if spec.on_refusal == "keep":
        return ""
    args, ops = context.args, context.ops
    try:
        with context.leases.table(spec.table):
            winner = undo_refused(refused, spec, args.interval, args.run_id, context.paths, ops.ledger, ops.gates)
    except RestoreError as error:
        log.warning("%s", error)
        return f"{error}."
    ops.gates.publish(spec.table)
    return (
        f"The table was restored: version {winner.version} has the rows of version {winner.intent.sources.restores}. "
        "The next run reads the refused batches again."
    )
