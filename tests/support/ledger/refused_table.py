"""A table with a refused version, and overrides of it."""

from __future__ import annotations

from datetime import UTC, datetime

from deltalake import DeltaTable

from include.contracts.job.report import CheckResult
from include.contracts.spec.table_spec import AnySpec, parse_spec
from include.control.gates.gates import Gates
from include.control.gates.result import GateResult, Override
from include.paths import LakehousePaths
from tests.support.documents.specs import silver_document
from tests.support.ledger.delta_tables import append, create_table

TABLE = "silver.orders"
RULE = {"expect_table_row_count_to_be_between": {"max_value": 3}, "action": "fail", "reason": "three at most"}
RULE_NAME = "expect_table_row_count_to_be_between()"
SPEC = parse_spec(silver_document(expectations=[RULE]))
AT = datetime(2013, 1, 5, 10, tzinfo=UTC)


def refused_table(paths: LakehousePaths) -> Gates:
    """Make a table of three versions: 0 is empty, 1 passed its gate, 2 was refused."""
    create_table(paths.table(TABLE))
    for passed in (True, False):
        judge(paths, append(paths.table(TABLE)), passed=passed)
    return Gates(paths)


def judge(paths: LakehousePaths, version: int, *, passed: bool = False, spec: AnySpec = SPEC) -> GateResult:
    """Record the gate's result for a version."""
    table_id = str(DeltaTable(str(paths.table(TABLE))).metadata().id)
    rule = spec.table_rules[0]
    check = CheckResult(rule=rule.rule, action="fail", passed=passed, reason=rule.reason, observed=4)
    result = GateResult(
        table=TABLE,
        table_id=table_id,
        version=version,
        suite_hash=spec.suite_hash,
        passed=passed,
        checks=(check,),
        batches=(f"main/{version}",),
        refused="" if passed else f"{TABLE} version {version} refused",
    )
    Gates(paths).record(result)
    return result


def decision(by: str = "ann", reason: str = "a holiday", run_id: str = "manual__1") -> Override:
    """Return the override of a person."""
    return Override(by=by, reason=reason, run_id=run_id, at=AT)
