"""A gate judges a version by what changed since the last checked one, and by all rows where that does not suffice."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.contracts.job.report import JobReport
from millrace.control.gates.gates import Gates
from millrace.control.gates.judged_figures import JudgedFigures, kept_figures
from millrace.control.ledger.states.table_state import TableStates
from millrace.errors import Outcome
from tests.support.documents.specs import silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

SILVER = "silver.orders"
ALL_ROWS = "all rows"


def rule(name: str, **arguments: Any) -> dict[str, Any]:
    return {name: arguments, "action": "fail"}


RULES = [
    rule("expect_column_values_to_be_between", column="amount", max_value=100),
    rule("expect_column_sum_to_be_between", column="amount", max_value=900),
    rule("expect_column_max_to_be_between", column="amount", max_value=1000),
    rule("expect_column_values_to_be_unique", column="order_id"),
]


def run(lakehouse: Lakehouse, number: int, *orders: dict[str, Any]) -> JobReport:
    """Merge a batch, and return what its gate said."""
    return given(lakehouse, SILVER, orders, number)


def judged_by(report: JobReport) -> list[str]:
    return [check.judged_by for check in report.checks]


@pytest.fixture
def shop(lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> Lakehouse:
    monkeypatch.setenv("LAKEHOUSE_GATE_READS", "changes")
    lakehouse.specs(silver_document(expectations=RULES))
    return lakehouse


def test_a_batch_is_judged_by_its_rows_also_after_a_refusal_and_a_small_table_by_all_rows(
    shop: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(shop, 1, order(1, 10), order(2, 20))
    assert judged_by(first) == [ALL_ROWS] * 4
    second = run(shop, 2, order(2, 30, seq=2), order(3, None))
    by_change = f"the change since version {first.version}"
    assert judged_by(second) == [by_change] * 4
    assert [check.observed for check in second.checks] == [None, 40.0, 30, None]

    refused = run(shop, 3, order(4, 500), order(1, 200, seq=3))
    assert refused.outcome is Outcome.COMMITTED
    between = refused.checks[0]
    assert (between.passed, between.unexpected_rows, between.samples) == (False, 2, (200, 500))
    assert refused.certified_version == second.version
    fixed = run(shop, 4, order(4, 5, seq=4), order(1, 6, seq=4))
    assert [check.passed for check in fixed.checks] == [True] * 4
    since_refused = f"the change since version {refused.version}"
    assert judged_by(fixed) == [since_refused, since_refused, ALL_ROWS, since_refused], "the greatest amount is gone"
    assert [check.observed for check in fixed.checks] == [None, 41.0, 30, None]
    stored = Gates(shop.paths).results(SILVER)[-1].result
    assert [check.judged_by for check in stored.checks] == judged_by(fixed)
    monkeypatch.undo()
    assert judged_by(run(shop, 5, order(5, 1))) == [ALL_ROWS] * 4


def test_all_rows_are_read_after_some_versions_and_by_other_rules_and_carried_figures_must_be_theirs(
    shop: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHOUSE_GATE_PROOF_AFTER", "1")
    run(shop, 1, order(1, 10), *(order(number, 0) for number in range(11, 20)))
    second = run(shop, 2, order(2, 20))
    assert judged_by(second) == [f"the change since version {second.version - 1}"] * 4
    wrong = kept_figures({"sum of amount": 31.0})
    TableStates(shop.paths).change(
        SILVER,
        (JudgedFigures, lambda stored: stored and stored.model_copy(update={"figures": {**stored.figures, **wrong}})),
    )
    third = run(shop, 3, order(3, 30))
    assert judged_by(third)[:4] == [ALL_ROWS] * 4, "one version was judged by its change"
    assert [check.passed for check in third.checks] == [True] * 4 + [False]
    assert third.checks[-1].observed == "sum of amount: 61.0 by the changes, 60.0 in all rows"
    assert third.certified_version == second.version
    refused = Gates(shop.paths).results(SILVER)[-1].result.refused
    assert f"lakehouse gate override {SILVER} --version {third.version}" in refused
    fourth = run(shop, 4, order(4, 40))
    assert judged_by(fourth) == [f"the change since version {third.version}"] * 4, "the counted figures are carried on"
    assert [check.passed for check in fourth.checks] == [True] * 4

    monkeypatch.setenv("LAKEHOUSE_GATE_PROOF_AFTER", "50")
    shop.specs(silver_document(expectations=RULES[:1]))
    assert judged_by(run(shop, 5, order(8, 50))) == [ALL_ROWS], "other rules"
