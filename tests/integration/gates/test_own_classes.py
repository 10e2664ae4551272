"""A gate with an expectation class of a project's own, in whole runs of a bronze table."""

from __future__ import annotations

from pathlib import Path

import pytest

from millrace.contracts.job.args import Job
from millrace.control.gates.gates import Gates
from millrace.errors import ExitCode, Outcome
from tests.support.documents.specs import Document, bronze_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order
from tests.support.quality.own_classes import own_classes

BRONZE = "bronze.orders"

FULL_BOXES = """
from great_expectations.expectations.expectation import BatchExpectation


class ExpectFullBoxes(BatchExpectation):
    size: int
    metric_dependencies = ("table.row_count",)

    def _validate(self, metrics, runtime_configuration=None, execution_engine=None):
        rows = metrics["table.row_count"]
        return {"success": rows % self.size == 0, "result": {"observed_value": rows}}
"""


@pytest.fixture
def shop(lakehouse: Lakehouse) -> Lakehouse:
    """Bronze has two orders, and three more are delivered."""
    given(lakehouse, BRONZE, [order(1, 1), order(2, 2)])
    lakehouse.deliver(2, "b.json", [order(number, number) for number in (3, 4, 5)])
    return lakehouse


def write_class(shop: Lakehouse, source: str) -> Path:
    folder = shop.folder / "classes"
    folder.mkdir(exist_ok=True)
    (folder / "boxes.py").write_text(source)
    return folder


def boxes_of(*sizes: int) -> Document:
    rules = [{"expect_full_boxes": {"size": size}, "action": "fail", "reason": "a box is sent full"} for size in sizes]
    return bronze_document(expectations=rules)


def test_a_class_judges_a_committed_batch_once_its_file_and_its_code_are_right(shop: Lakehouse) -> None:
    folder = write_class(shop, f"import module_of_nobody\n{FULL_BOXES}")
    shop.specs(boxes_of(5))
    with own_classes(folder):
        failed = shop.run(BRONZE, 2)
    assert (failed.exit_code, failed.error_class) == (ExitCode.BAD_SPEC, "SpecError")
    assert failed.message == (
        f"{folder / 'boxes.py'} cannot be run: ModuleNotFoundError: No module named 'module_of_nobody'\n"
        "Correct it, then run the table again, or in Airflow clear the failed task with its downstream tasks."
    )
    assert (len(shop.rows(BRONZE, "order_id")), Gates(shop.paths).certified(BRONZE)) == (5, 1)

    with own_classes(write_class(shop, FULL_BOXES)):
        shop.specs(boxes_of(0, 2))
        refused = shop.run(BRONZE, 2, job=Job.QUALITY_GATE)
        shop.specs(boxes_of(5))
        passed = shop.run(BRONZE, 2)

    assert (refused.outcome, refused.version, refused.certified_version) == (Outcome.GATE_FAILED, 2, 1)
    assert (
        "expect_full_boxes(size=0) could not be checked: integer modulo by zero (a box is sent full); "
        "and 1 more failed; readers stay on version 1\nFix the data or the rule, then run the table again"
    ) in refused.message
    raised, check = refused.checks
    assert (raised.passed, check.passed, check.observed, check.expected) == (False, False, 5, {"size": 2})
    assert (passed.outcome, passed.version, passed.certified_version) == (Outcome.NO_OP, 2, 2)
    assert [check.passed for check in passed.checks] == [True]
