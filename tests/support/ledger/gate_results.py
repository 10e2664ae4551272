"""Results of gates for tests."""

from __future__ import annotations

from millrace.contracts.job.report import CheckResult
from millrace.control.gates.gates import Gates
from millrace.control.gates.result import GateResult

TABLE = "silver.flights"


def last_passed(gates: Gates, table: str = TABLE) -> int | None:
    """Return the newest version that a gate passed."""
    verdicts = gates.verdicts(table)
    return verdicts.passed[-1].version if verdicts and verdicts.passed else None


def verdict(table_id: str, version: int, *, passed: bool = True, suite_hash: str = "suite") -> GateResult:
    """Return the result of a gate with one rule for a version."""
    check = CheckResult(rule="expect_column_to_exist(n)", action="fail", passed=passed, samples=(1, "a"), observed=0.5)
    return GateResult(
        table=TABLE,
        table_id=table_id,
        version=version,
        suite_hash=suite_hash,
        passed=passed,
        checks=(check,),
        batches=(f"main/{version}",),
        refused="" if passed else f"version {version} refused",
    )
