"""Drivers die around a gate that judges by what changed, and run again: later gates go on from right figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from include.contracts.job.report import JobReport
from include.control.gates.gates import Gates
from include.errors import Outcome
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.killed_drivers.batches import CleanBatch, run_clean_batch, run_successfully
from tests.support.killed_drivers.drivers import Drivers
from tests.support.killed_drivers.places import BEFORE_REPORT, RESULT_RECORDED
from tests.support.killed_drivers.steps import Step
from tests.support.lakehouse import Lakehouse, copy_lakehouse, order

BRONZE, SILVER = "bronze.orders", "silver.orders"
AMOUNT: dict[str, Any] = {"column": "amount"}
RULES = [
    {name: {**arguments}, "action": "fail"}
    for name, arguments in {
        "expect_column_values_to_be_between": {**AMOUNT, "max_value": 100},
        "expect_column_sum_to_be_between": {**AMOUNT, "max_value": 900},
        "expect_column_min_to_be_between": {**AMOUNT, "min_value": 0},
        "expect_column_values_to_not_be_null": {**AMOUNT, "mostly": 0.5},
        "expect_column_values_to_be_unique": {"column": "order_id"},
        "expect_table_row_count_to_be_between": {"min_value": 2},
    }.items()
]
DAYS = {
    1: [order(number, number, 8) for number in range(1, 9)],
    2: [order(2, 30, 9, seq=2), order(9, 40, 9), order(3, None, 9, seq=2, op="delete"), order(4, None, 9, seq=2)],
    3: [order(5, 500, 10, seq=3), order(10, 3, 10)],
    4: [order(5, 5, 11, seq=4), order(11, 2, 11)],
}


@pytest.fixture(scope="module")
def second(drivers: Drivers, tmp_path_factory: pytest.TempPathFactory) -> CleanBatch:
    """The second batch: an update, a new order, a deleted order and an amount that is gone, judged by what changed."""
    shop = Lakehouse(tmp_path_factory.mktemp("figures") / "shop")
    shop.specs(
        bronze_document(columns={**bronze_document()["columns"], "op": {"type": "string"}}),
        silver_document(apply_as_deletes="op = 'delete'", expectations=RULES),
    )
    for number in (1, 2):
        shop.deliver(number, "a.json", DAYS[number])
        run_successfully(drivers, shop, BRONZE, number)
        if number == 1:
            run_successfully(drivers, shop, SILVER, number)
    batch = run_clean_batch(drivers, shop, SILVER, 2)
    assert batch.report.rows.model_dump(exclude_defaults=True) == {
        "read": 4, "applied": 4, "inserted": 1, "updated": 2, "deleted": 1
    }  # fmt: skip
    assert batch.report.version
    assert _judged_since(batch.report) == {batch.report.version - 1}
    return batch


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(RESULT_RECORDED, marks=pytest.mark.slow),
        *(
            pytest.param(place, marks=pytest.mark.faults)
            for place in (Step.COMMIT, Step.RECORDED, Step.CLOSED, Step.CERTIFICATE, BEFORE_REPORT)
        ),
    ],
)
def test_the_next_gates_find_by_the_changes_what_all_rows_say(
    drivers: Drivers, second: CleanBatch, tmp_path: Path, place: str
) -> None:
    shop = copy_lakehouse(second.before, tmp_path / "shop")
    second.kill(drivers, shop, place)
    second.assert_same(shop, second.run(drivers, shop))
    assert second.report.version
    known = second.report.version - (place == RESULT_RECORDED)
    _assert_figures(shop, second.report)

    refused = _run(drivers, shop, 3)

    assert _judged_since(refused) == {known}
    assert refused.certified_version == second.report.version
    assert [check.passed for check in refused.checks] == [False, *[True] * 5]
    _assert_figures(shop, refused)
    fixed = _run(drivers, shop, 4)
    assert _judged_since(fixed) == {refused.version}
    assert fixed.certified_version == fixed.version
    _assert_figures(shop, fixed)


def _run(drivers: Drivers, shop: Lakehouse, number: int) -> JobReport:
    shop.deliver(number, "a.json", DAYS[number])
    run_successfully(drivers, shop, BRONZE, number)
    report = run_successfully(drivers, shop, SILVER, number)
    assert report.outcome is Outcome.COMMITTED
    return report


def _judged_since(report: JobReport) -> set[int]:
    """Return the version whose figures each rule was judged with; an error if a rule was judged by all rows."""
    return {int(check.judged_by.removeprefix("the change since version ")) for check in report.checks}


def _assert_figures(shop: Lakehouse, report: JobReport) -> None:
    """Check that the figures of the version's result are those of its rows."""
    assert report.version
    amounts = [amount for (amount,) in shop.rows(SILVER, "amount")]
    known = [amount for amount in amounts if amount is not None]
    result = Gates(shop.paths).results(SILVER)[-1].result
    assert result.version == report.version
    between, total, least, nulls, unique, rows = result.checks
    assert between.unexpected_rows == sum(amount > 100 for amount in known)
    assert (total.observed, least.observed, rows.observed) == (sum(known), min(known), len(amounts))
    assert (nulls.unexpected_rows, unique.unexpected_rows) == (len(amounts) - len(known), 0)
