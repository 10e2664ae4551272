"""The gate: judges one exact version of a table, and certifies it or blocks."""

from __future__ import annotations

from dataclasses import dataclass

from include.contracts.job.report import CheckResult
from include.control.gates.result import GateResult
from include.control.gates.verdicts import Verdicts
from include.control.ledger.resolution import table_id
from include.control.log.delta_log import commits_still_known
from spark_jobs.delta_io.reads import read_version
from spark_jobs.layers.gate.judged_version import facts_of, judged_version, other_tables
from spark_jobs.layers.gate.restoring import take_back
from spark_jobs.quality.fused.one_pass import GATE_CONF
from spark_jobs.quality.suites import judge
from spark_jobs.quality.verdicts.verdict import verdict
from spark_jobs.runtime.context import JobContext


@dataclass(frozen=True)
class GateOutcome:
    """What a gate said, and what readers may use now.

    Attributes:
        result: the verdict on the judged version.
        standing: what all verdicts on the table come to.
        moved: whether the verdict moved it.
        warnings: one line for each rule that only warns and failed.
        restore: what became of a refused version that the spec wants taken back; empty for any other.
    """

    result: GateResult
    standing: Verdicts | None
    moved: bool
    warnings: tuple[str, ...] = ()
    restore: str = ""

    @property
    def certified(self) -> int | None:
        """The version that readers may use."""
        return self.standing.certified if self.standing else None


def run_gate(context: JobContext, version: int) -> GateOutcome:
    """Judge `version`, unless these very rules have judged it before, and record the result.

    A refused version is taken back where the spec says so.
    """
    table, gates = context.spec.table, context.records.gates
    standing = gates.standing(table)
    before = standing.certified if standing else None
    known = gates.result_of(standing, table, version, context.spec.suite_hash)
    result = known or _judge(context, version, standing)
    said = verdict(table, version, result.checks, before)
    if known is None:
        standing = gates.record(result)
    moved = known is None and result.passed and version > (-1 if before is None else before)
    if result.passed:
        return GateOutcome(result, standing, moved, said.warnings)
    restore = take_back(context, result)
    return GateOutcome(result, gates.standing(table), moved, said.warnings, restore)


def _judge(context: JobContext, version: int, standing: Verdicts | None) -> GateResult:
    spec, certified = context.spec, standing.certified if standing else None
    path = context.paths.table(spec.table)
    facts, others = facts_of(context, version, certified), other_tables(context)
    checks = _checks(context, version, facts, others) if spec.table_rules else ()
    said = verdict(spec.table, version, checks, certified)
    commits = commits_still_known(path, certified)
    batches = [commit.metadata for commit in commits if commit.metadata and commit.version <= version]
    return GateResult(
        table=spec.table,
        table_id=table_id(path),
        version=version,
        suite_hash=spec.suite_hash,
        passed=said.passed,
        checks=checks,
        batches=tuple(f"{batch['stream']}/{batch['batch_seq']}" for batch in batches),
        refused=said.refused + _standing_refusal(context, version, certified) if not said.passed else "",
        facts=facts,
        compared=others,
    )


def _checks(
    context: JobContext, version: int, facts: dict[str, int], others: dict[str, int | None]
) -> tuple[CheckResult, ...]:
    with context.open_session(GATE_CONF) as session:
        frame = read_version(session, context.paths.table(context.spec.table), version)
        return judge(frame, context.spec.table_rules, judged_version(context, session, version, facts, others))


def _standing_refusal(context: JobContext, version: int, certified: int | None) -> str:
    """Names what was refused before: a version that a person let pass, or the first since the certified one."""
    table, gates = context.spec.table, context.records.gates
    let = gates.override_in_force(table)
    said = f" Version {let.version} was {let.override}; that covers no later one." if let else ""
    first = gates.first_refused(table, above=-1 if certified is None else certified)
    if first is None or first.version == version:
        return said
    last_batch = first.batches[-1] if first.batches else "?"
    return f"{said} First refused at version {first.version} (batch {last_batch})."
