"""`on_changed_file: replace`: the new content of a file counts, in bronze, silver and the quarantines."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from deltalake import DeltaTable

from millrace.contracts.file_status import FileStatus
from millrace.contracts.job.args import Job
from millrace.contracts.job.findings import Findings
from millrace.contracts.row_status import RowStatus
from millrace.control.landing.file_states import file_states
from millrace.control.ledger.ledger import Ledger
from millrace.errors import Outcome
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, order
from tests.support.silver.silver_models import tombstones

BRONZE, SILVER = TABLES = ("bronze.orders", "silver.orders")
NUMBERED = {"expect_column_values_to_not_be_null": {"column": "event_seq"}, "action": "drop", "reason": "no number"}
AT_LEAST_4 = {"expect_column_values_to_be_between": {"column": "amount", "min_value": 4}}
FIRST = [
    order(1, 5, 8),
    order(2, 7, 8),
    order(3, -1, 8),
    order(4, None, 9, op="delete"),
    {**order(5, 5), "event_seq": None},
    "{broken",
]
OTHER = [order(1, 3, 7), order(4, 9, 8), order(5, 2, 1)]
REFUSED_TOO = [order(2, -8, 9), "{also broken"]
SECOND = [order(2, 8, 6), order(6, 1, 1)]
AFTER_SECOND = {"o1": 3, "o2": 8, "o4": 9, "o5": 2, "o6": 1}
"""The older event of b.json counts again, o2 has an older event now, and o4 has no delete any more."""


def judge_by(shop: Lakehouse, *rules: dict[str, Any]) -> None:
    shop.specs(silver_document(apply_as_deletes="op = 'delete'", expectations=list(rules)))


def amounts(shop: Lakehouse) -> dict[str, int]:
    return dict(shop.rows(SILVER, "order_id", "amount"))


def run(shop: Lakehouse, *tables: str) -> None:
    for report in shop.run_all(1, *tables):
        assert report.outcome is Outcome.COMMITTED, report.message


@pytest.fixture(scope="module")
def made(shared: Lakehouse) -> Lakehouse:
    """Orders of two files, in both layers; a file that is delivered again replaces what it held."""
    shared.specs(bronze(), silver_document(apply_as_deletes="op = 'delete'", expectations=[AT_LEAST_0]))
    shared.deliver(1, "a.json", FIRST)
    shared.deliver(1, "b.json", OTHER)
    run(shared, *TABLES)
    assert amounts(shared) == {"o1": 5, "o2": 7, "o5": 2}, "o4 is deleted, o3 quarantined"
    assert [len(shared.quarantine(table)) for table in TABLES] == [1, 1]
    return shared


def bronze(**changes: Any) -> dict[str, Any]:
    """The spec of the orders, with a column for the operation of an event."""
    source = {**bronze_document()["source"], "on_changed_file": "replace"}
    columns = {**bronze_document()["columns"], "op": {"type": "string"}}
    return bronze_document(source=source, columns=columns, expectations=[NUMBERED], **changes)


def test_bronze_reports_the_records_that_it_refused(made: Lakehouse, shop: Lakehouse) -> None:
    report = made.reports[0]
    rows_by_reason = {(one.reason.partition(":")[0], one.action): one.rows for one in report.findings.refused}
    assert rows_by_reason == {
        ("malformed record", "quarantine"): 1,
        ("expect_column_values_to_not_be_null(event_seq)", "drop"): 1,
    }
    assert report.rows.dropped == 1
    assert shop.run(BRONZE).findings == Findings(), "a run without a batch found nothing"


def test_the_new_content_of_a_file_replaces_its_rows_in_both_layers(shop: Lakehouse) -> None:
    before = shop.rows(BRONZE, "order_id")
    assert tombstones(shop, SILVER).keys() == {"o4"}
    shop.deliver(1, "a.json", "PAR1 is no JSON line\n")
    assert shop.run(BRONZE).outcome is Outcome.BAD_INPUT
    assert shop.rows(BRONZE, "order_id") == before, "content that cannot be loaded leaves the old rows"
    shop.deliver(1, "a.json", REFUSED_TOO)
    shop.deliver(1, "new.json", [order(7, 4)])
    run(shop, BRONZE)
    shop.deliver(1, "a.json", SECOND)
    run(shop, *TABLES)
    assert amounts(shop) == {**AFTER_SECOND, "o7": 4}
    assert [shop.quarantine(table) for table in TABLES] == [[], []]
    assert tombstones(shop, SILVER) == {}, "nothing remembers the retracted delete"
    states = file_states(Ledger(shop.paths), BRONZE, DeltaTable(str(shop.paths.table(BRONZE))).metadata().id)
    assert [(file.path[-6:], file.status, file.rows.written if file.rows else None) for file in states] == [
        ("a.json", FileStatus.LOADED, 2), ("b.json", FileStatus.LOADED, 3), ("w.json", FileStatus.LOADED, 1)
    ]  # fmt: skip


def test_a_key_that_is_computed_again_has_the_rows_that_were_accepted_when_they_came(shop: Lakehouse) -> None:
    shop.deliver(1, "c.json", [order(1, -7, 12), order(6, 2, 2), order(7, 9, 9)])
    shop.deliver(1, "d.json", [order(7, -2, 1)])
    run(shop, *TABLES)
    assert shop.replay(SILVER, assign={"amount": "if(order_id = 'o7', 2, amount)"}).rows.superseded == 1
    judge_by(shop)
    shop.deliver(1, "a.json", SECOND)
    run(shop, *TABLES)
    assert amounts(shop) == {**AFTER_SECOND, "o6": 2, "o7": 9}
    assert [json.loads(row.record)["amount"] for row in shop.waiting(SILVER)] == [-7], "it waits, and is in no table"
    judge_by(shop, {**AT_LEAST_4, "action": "quarantine"})
    shop.deliver(1, "c.json", [order(9, 9)])
    run(shop, *TABLES)
    assert amounts(shop) == {**AFTER_SECOND, "o7": 2, "o9": 9}, "o1, o6 and o7 have rows that are in no quarantine"
    assert shop.waiting(SILVER) == []


def test_a_key_that_is_computed_again_lacks_the_rows_that_were_dropped_when_they_came(shop: Lakehouse) -> None:
    judge_by(shop, {**AT_LEAST_0, "action": "drop"})
    shop.deliver(1, "c.json", [order(1, -7, 12)])
    run(shop, *TABLES)
    assert shop.reports[-1].rows.dropped == 1
    judge_by(shop, AT_LEAST_0, {**AT_LEAST_4, "action": "drop"})
    shop.deliver(1, "a.json", SECOND)
    run(shop, *TABLES)
    assert amounts(shop) == {"o1": 3, "o2": 8, "o4": 9, "o5": 2}, "o1 had 3 before there was a rule, and o6 came after"
    shop.run_well(1, SILVER, reprocess=True)
    assert [json.loads(row.record)["amount"] for row in shop.waiting(SILVER)] == [-7]
    judge_by(shop)
    shop.deliver(1, "c.json", [order(8, 8)])
    run(shop, *TABLES)
    assert amounts(shop) == {"o2": 8, "o4": 9, "o5": 2, "o8": 8}, "by the rules that read it last, o1 has no row"


@pytest.mark.parametrize(
    "replaced_by",
    [
        "a batch",
        pytest.param("a batch, and its content came back", marks=pytest.mark.slow),
        pytest.param("the rebuild", marks=pytest.mark.slow),
    ],
)
def test_a_fixed_row_that_went_with_its_file_does_not_come_back_by_a_rebuild(shop: Lakehouse, replaced_by: str) -> None:
    shop.deliver(1, "c.json", [order(8, -2)])
    run(shop, *TABLES)
    assert shop.replay(SILVER, assign={"amount": "-amount"}).rows.applied == 2
    assert amounts(shop) == {"o1": 5, "o2": 7, "o3": 1, "o5": 2, "o8": 2}
    shop.deliver(1, "a.json", SECOND)
    if replaced_by != "the rebuild":
        run(shop, *TABLES)
        assert amounts(shop) == {**AFTER_SECOND, "o8": 2}, "o3 went with its file"
    after = AFTER_SECOND
    if replaced_by == "a batch, and its content came back":
        shop.deliver(1, "a.json", FIRST)
        run(shop, *TABLES)
        after = {"o1": 5, "o2": 7, "o5": 2}
    assert shop.rebuild(BRONZE).outcome is Outcome.COMMITTED
    run(shop, SILVER)
    assert amounts(shop) == {**after, "o8": 2}, "c.json still has what it had"


@pytest.mark.slow
def test_a_fixed_row_that_comes_again_with_another_content_of_its_file_waits_again(shop: Lakehouse) -> None:
    assert shop.replay(SILVER, assign={"amount": "2"}).rows.applied == 1
    shop.rebuild(BRONZE)
    shop.deliver(1, "a.json", [*SECOND, order(3, -1, 8)])
    run(shop, *TABLES)
    assert amounts(shop) == AFTER_SECOND, "the fixed row went with its file"
    assert [json.loads(row.record)["amount"] for row in shop.waiting(SILVER, RowStatus.OPEN)] == [-1]


def test_without_a_change_feed_every_key_is_computed_again(shop: Lakehouse) -> None:
    shop.specs(bronze(maintenance={"change_data_feed": False}))
    shop.deliver(1, "a.json", SECOND)
    run(shop, *TABLES)
    assert amounts(shop) == AFTER_SECOND


@pytest.mark.faults
def test_a_delete_without_a_tombstone_is_retracted_as_well(shop: Lakehouse) -> None:
    """The row was fixed and replayed, so that bronze alone cannot restore it."""
    retained = {"tombstones": {"retain": "400 days"}}
    shop.specs(silver_document(apply_as_deletes="op = 'delete'", expectations=[AT_LEAST_0], maintenance=retained))
    shop.replay(SILVER, assign={"amount": "-amount"})
    assert amounts(shop)["o3"] == 1
    shop.deliver(1, "c.json", [order(3, None, 9, op="delete")])
    run(shop, *TABLES)
    forgot = shop.run(SILVER, job=Job.TABLE_VACUUM, at=datetime.now(UTC) + timedelta(days=401))
    assert forgot.details["tombstones"]["keys"] == 2, forgot.message
    assert amounts(shop) == {"o1": 5, "o2": 7, "o5": 2}
    shop.specs(bronze(maintenance={"change_data_feed": False}))
    shop.deliver(1, "c.json", [order(6, 1, 1)])
    run(shop, *TABLES)
    assert amounts(shop) == {"o1": 5, "o2": 7, "o3": 1, "o5": 2, "o6": 1}
