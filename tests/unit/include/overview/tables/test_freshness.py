"""When a table becomes stale, by its rule and its newest row."""

from __future__ import annotations

from datetime import UTC, datetime

from include.contracts.job.report import CheckResult
from include.control.gates.verdicts import summarize
from include.overview.tables.freshness import freshness_of
from tests.support.documents.specs import silver_spec
from tests.support.ledger.gate_results import verdict

RULE = {"expect_table_to_be_fresh": {"column": "event_at", "max_age": "2 days"}, "action": "fail"}


def test_a_row_of_the_last_day_of_all_calendars_is_never_stale() -> None:
    spec = silver_spec(expectations=[RULE])
    check = CheckResult(rule=spec.table_rules[0].rule, action="fail", passed=True, observed="9999-12-31T00:00:00+00:00")
    found = freshness_of(spec, summarize([verdict("t", 1).model_copy(update={"checks": (check,)})]), None)
    assert found is not None
    assert found.stale_at == datetime.max.replace(tzinfo=UTC)
