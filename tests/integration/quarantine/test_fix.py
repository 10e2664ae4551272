"""Fixes: the new values are checked, recorded as values, and reported with the rules that they fail."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.contracts.job.requests import QuarantineRequest, RebuildRequest
from millrace.contracts.row_status import RowStatus
from millrace.errors import Outcome
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.given import given
from tests.support.killed_drivers.drivers import OwnProcess
from tests.support.killed_drivers.steps import Step
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, order

BRONZE, SILVER = "bronze.orders", "silver.orders"
PLACE = "struct<x:decimal(9,2),at:array<date>>"
EXACT = {"price": {"type": "decimal(20,6)"}, "place": {"type": PLACE}}
COLUMNS = {**bronze_document()["columns"], **EXACT, "note": {"type": "string"}}
NOTED = {**silver_document()["columns"], **EXACT, "noted": {"type": "int", "from": "note"}}
AT = "2013-01-01T08:00:00.123456Z"


@pytest.fixture(scope="module")
def made(shared: Lakehouse) -> Lakehouse:
    """Silver refused two amounts, and a note that is no number."""
    shared.specs(
        bronze_document(columns=COLUMNS),
        silver_document(columns=NOTED, expectations=[AT_LEAST_0], sequence_by=["event_at"]),
    )
    exact = order(2, -2, event_at=AT, price="12345678901234.123456")
    given(shared, BRONZE, [order(1, -1, note="1"), exact, order(3, 3, note="three")])
    assert shared.run(SILVER).outcome is Outcome.COMMITTED
    assert len(shared.waiting(SILVER)) == 3
    return shared


def fix(shop: Lakehouse, *, dry_run: bool = False, **asked: Any) -> JobReport:
    return shop.ask(Job.QUARANTINE_FIX, SILVER, QuarantineRequest(said_by="ann", **asked), dry_run=dry_run)


def test_fixes_are_applied_in_turn_to_the_received_row_each_to_its_own_columns_and_derived_ones_follow(
    shop: Lakehouse,
) -> None:
    ids = {json.loads(row.record)["order_id"]: row.id for row in shop.waiting(SILVER)}
    mends = {"amount": "abs(amount) * 10", "note": "replace(note, 'three', '3')"}
    report = fix(shop, assign=mends, why="words")
    assert "3 rows fixed: 3 pass all rules now" in report.message
    fix(shop, assign={"amount": "amount + 1"}, rows={"reason": "amount"})
    lines = [
        f'{{"id": "{ids["o1"]}", "record": {{"amount": "15", "price": 99999999999999.654321, "day": null, '
        '"place": {"x": 1.50, "at": ["2013-01-02"]}}}',
        f'{{"id": "{ids["o3"]}", "record": {{"day": "2013-02-03"}}}}',
    ]
    fix(shop, edited="\n".join(lines), rows={"ids": [ids["o1"], ids["o3"]]})
    assert {row.status for row in shop.waiting(SILVER)} == {RowStatus.FIXED}
    assert shop.rows(SILVER, "order_id") == [], "a fix brings nothing into the table"
    assert shop.replay(SILVER).rows.applied == 3
    first, place = date(2013, 1, 1), {"x": Decimal("1.50"), "at": [date(2013, 1, 2)]}
    assert shop.rows(SILVER, "order_id", "amount", "noted", "price", "day", "event_at", "place") == [
        ("o1", 15, 1, Decimal("99999999999999.654321"), None, datetime(2013, 1, 1, tzinfo=UTC), place),
        ("o2", 21, None, Decimal("12345678901234.123456"), first, datetime(2013, 1, 1, 8, 0, 0, 123456, UTC), None),
        ("o3", 30, 3, None, date(2013, 2, 3), datetime(2013, 1, 1, tzinfo=UTC), None),
    ]
    plan = shop.ask(Job.TABLE_REBUILD, SILVER, RebuildRequest(), dry_run=True)
    assert "3 replayed rows of silver.orders will wait for the replay again" in plan.for_people
    rebuilt = shop.ask(Job.TABLE_REBUILD, SILVER, RebuildRequest())
    assert "has 0 rows, the table before had 3" in rebuilt.message
    assert f"3 fixed rows wait for the replay: lakehouse quarantine replay {SILVER} --all" in rebuilt.message
    assert shop.replay(SILVER).rows.applied == 3


def test_the_rows_that_a_dead_driver_has_not_yet_put_into_quarantine_are_fixed_too(shop: Lakehouse) -> None:
    shop.deliver(2, "2.json", [order(4, -4, event_at=AT)])
    assert shop.run(BRONZE, 2).outcome is Outcome.COMMITTED
    assert OwnProcess().run(shop, SILVER, 2, dies=Step.COMMIT).code < 0
    assert len(shop.waiting(SILVER)) == 3, "the row is not there yet"
    report = fix(shop, assign={"amount": "abs(amount)"}, rows={"reason": "amount"})
    assert "3 rows fixed: 3 pass all rules now" in report.message, report.message


def test_a_row_that_still_fails_says_so_and_a_dry_run_records_nothing(shop: Lakehouse) -> None:
    report = fix(shop, assign={"amount": "amount - 1"}, rows={"reason": "amount"}, dry_run=True)
    assert (report.outcome, report.details["quarantined"]) == (Outcome.NO_OP, 2)
    assert all("amount" in row["reasons"][0] for row in report.details["rows"])
    assert {row.status for row in shop.waiting(SILVER)} == {RowStatus.OPEN}


def test_an_invalid_fix_is_refused_completely(shop: Lakehouse) -> None:
    refusals = {
        ("amuont", "1"): "no column 'amuont': did you mean 'amount'",
        ("_source_file", "'x'"): "no column '_source_file'",
        ("amount", "(select count(*) from text.`/etc/passwd`)"): "function count is not for single rows",
        ("amount", "nosuch + 1"): "cannot be computed",
        ("amount", "'many'"): "amount is no int: many",
        ("amount", "1.9"): "amount is no int: 1.9",
        ("price", "0.0000001"): "price is no decimal(20,6): 0.0000001",
        ("day", "'20089'"): "day is no date: 20089",
        ("day", "event_at"): "day is no date: 2013-01-01 08:00:00.123456",
    }
    for (column, sql), message in refusals.items():
        report = fix(shop, assign={column: sql})
        assert (report.outcome, message in report.message) == (Outcome.BAD_INPUT, True), report.message
    [row, *_] = shop.waiting(SILVER)
    edits = {
        '"amount": "many"': "amount is no int: many",
        '"price": 19.0000001': "price is no decimal(20,6): 19.0000001",
        '"place": {"x": 19.999}': 'place is no struct<x:decimal(9,2),at:array<date>>: {"x":19.999}',
    }
    for edit, message in edits.items():
        report = fix(shop, edited=f'{{"id": "{row.id}", "record": {{{edit}}}}}', rows={"ids": [row.id]})
        assert (report.outcome, message in report.message) == (Outcome.BAD_INPUT, True), report.message
    assert {row.status for row in shop.waiting(SILVER)} == {RowStatus.OPEN}
