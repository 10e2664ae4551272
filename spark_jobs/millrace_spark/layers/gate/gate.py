"""The gate: check one exact version of a table, certify or refuse it, and restore the version before if asked.

Rules can compare the version with its facts, earlier versions, its sources and other tables.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from millrace.contracts.job.report import CheckResult
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.column_types import TYPES
from millrace.contracts.spec.expectation_arguments import COMPARISONS, REFERENCES
from millrace.control.gates.judged_figures import JudgedFigures
from millrace.control.gates.result import GateResult
from millrace.control.gates.verdicts import Verdicts
from millrace.control.gates.verification import failed_verification, wrong_rows_way_out
from millrace.control.ledger.resolution import table_id
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.batch import BatchSources
from millrace.control.log.delta_log import EPOCH_START, commit_mark, read_commit, remaining_commits
from millrace.control.log.stored_tables import open_table
from millrace.control.log.streams import NONE, concurrency_of
from millrace.control.maintenance.holding import keep_held_log
from millrace.control.repair.restoring import undo_refused
from millrace.errors import RestoreError, TornLogError
from millrace_spark.delta_io.reads import read_version
from millrace_spark.layers.gate.changed_rows import JudgedVersion, change_since, next_figures, rules_digest
from millrace_spark.quality.fused.one_pass import GATE_CONF
from millrace_spark.quality.suites import check_rules
from millrace_spark.quality.verdicts.comparable_version import APPLIED, IN_TABLE, ComparableVersion
from millrace_spark.quality.verdicts.restricted_rules import RestrictedRules
from millrace_spark.quality.verdicts.verdict import RULE as CARRIED
from millrace_spark.quality.verdicts.verdict import carried_way_out, refusal_text, warnings_of
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
    checks: tuple[CheckResult, ...] = ()
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
            checks, lasting = check_rules(frame, spec.table_rules, compared, change, restricted)
            figures = next_figures(judged, change, lasting)
    found_wrong = failed_verification(verdicts, path, version)
    checks = (found_wrong, *checks) if found_wrong else checks
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
            winner = undo_refused(refused, spec, args.interval, args.run_id, ops)
            keep_held_log(winner, ops, args.run_id)
    except RestoreError as error:
        log.warning("%s", error)
        return f"{error}."
    ops.gates.publish(spec.table)
    return (
        f"The table was restored: version {winner.version} has the rows of version {winner.intent.sources.restores}. "
        "The next run reads the refused batches again."
    )


def version_facts(context: JobContext, version: int, certified: int | None) -> dict[str, int]:
    """Return the facts of a version with which later versions are compared; `certified` is the last certified version.

    They are recorded with every result, so that a rule that is added later can compare with earlier versions.
    """
    table = context.paths.table(context.spec.table)
    facts = {IN_TABLE: table_rows(table, version)}
    commit = read_commit(table, version)
    if commit and commit.metadata.get("sources", {}).get("deletes"):
        return facts  # it was to apply nothing
    applied = context.ops.ledger.history.applied_rows(
        context.spec.table, _batches_of_the_run(table, version, certified)
    )
    return facts if applied is None else {**facts, APPLIED: applied}


def other_tables(context: JobContext) -> dict[str, int | None]:
    """Return the other tables that rules name -> their certified version."""
    named = {table for rule in context.spec.table_rules for table in rule.other_tables}
    return {table: context.ops.gates.certified(table) for table in sorted(named)}


def required_tables(context: JobContext, others: Mapping[str, int | None]) -> dict[str, tuple[LakePath, int]]:
    """Return the tables in which values must exist, as far as their logs are there -> path and certified version."""
    named = {rule.arguments["other_table"] for rule in context.spec.table_rules if rule.name in REFERENCES}
    certified = {other: (context.paths.table(other), others[other]) for other in sorted(named)}
    return {other: (path, at) for other, (path, at) in certified.items() if at is not None and commit_mark(path, at)}


def comparable_version(
    context: JobContext,
    session: SparkSession,
    version: int,
    facts: dict[str, int],
    others: dict[str, int | None],
) -> ComparableVersion | None:
    """Return the version with everything that it can be compared with; None if no rule compares.

    Raises:
        TornLogError: the log has no entry for the version's commit any more, or no time of a commit of another tool.
    """
    if not any(rule.name in COMPARISONS for rule in context.spec.table_rules):
        return None
    table = context.spec.table
    path = context.paths.table(table)
    commit = read_commit(path, version)
    if commit is None:
        raise TornLogError(
            f"The log of {path} has no commit of version {version} any more, so that the version cannot be compared "
            "with anything\nRun the table's writer again, then its gate."
        )
    # A commit of another tool has no interval and no sources: it is compared at the time of its commit.
    batch = commit.metadata
    if not batch and commit.at == EPOCH_START:
        raise TornLogError(
            f"The commit of version {version} in the log of {path} has no timestamp, so that nobody can say how fresh "
            "its rows were\nHave the tool that writes the table record `commitInfo.timestamp`, or leave out the rules "
            "that compare versions."
        )
    sources = BatchSources.model_validate(batch.get("sources", {}))
    gates = context.ops.gates
    last = next(gates.certificates_below(table, version), None)

    def read(other: str, at: int) -> DataFrame:
        return read_version(session, context.paths.table(other), at)

    def columns_of(other: str, at: int) -> dict[str, str]:
        fields = open_table(context.paths.table(other), version=at, without_files=True).schema().fields
        return {field.name: _type_name(field.type) for field in fields}

    return ComparableVersion(
        table=table,
        version=version,
        interval_end=datetime.fromisoformat(batch["interval_end"]) if batch else commit.at,
        committed_at=commit.at,
        facts=facts,
        past=lambda: (result.facts for result in gates.certificates_below(table, version)),
        certified=last.version if last else None,
        others=others,
        sources={source: upto for source, (_, upto) in sources.ranges.items()},
        read=read,
        rows_of=lambda other, at: table_rows(context.paths.table(other), at),
        columns_of=columns_of,
    )


def _batches_of_the_run(table: LakePath, version: int, certified: int | None) -> dict[str, int]:
    """Return token -> number of the batches, since the certified version, of the run that made `version`."""
    after = None if certified is None else min(certified, version - 1)
    commits = remaining_commits(table, after)
    batches = [commit for commit in commits if commit.metadata and commit.version <= version]
    run_id = batches[-1].metadata["run_id"] if batches else ""
    of_run = [batch.metadata for batch in batches if batch.metadata["run_id"] == run_id]
    return {batch["token"]: batch["batch_seq"] for batch in of_run}


def _type_name(delta_type: object) -> str:
    """Return the type as a spec writes it.

    >>> from deltalake.schema import PrimitiveType
    >>> _type_name(PrimitiveType("integer"))
    'int'
    """
    name = getattr(delta_type, "type", "")
    name = name if isinstance(name, str) else str(delta_type)
    return next((kind for kind, facts in TYPES.items() if facts.delta == name), name)
