"""The quarantine as people ask of it: reasons, rows, where they stand."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from include.contracts.job.quarantine_request import RowFilter
from include.contracts.row_status import RowStatus
from include.control.quarantine.ageing import ageing_note
from include.control.quarantine.events import QuarantineEvents, ReceivedRow, RowEvent, Said
from include.control.quarantine.rows import Refusal, count_by_status, quarantined_rows, refusals
from include.paths import LakehousePaths
from tests.support.documents.specs import gold_spec, silver_spec
from tests.support.ledger.delta_tables import day
from tests.support.ledger.quarantine_rows import FIRST, SEEN, quarantine, refused

ORDERS = "silver.orders"
TOO_LOW, NO_KEY = "expect_between(amount): no negative prices", "not_null(order_id)"
ANN = Said("ann", "so", "a run")
DAY = timedelta(days=1)


@pytest.fixture
def paths(tmp_path: Path) -> LakehousePaths:
    return LakehousePaths(tmp_path)


@pytest.fixture
def orders(paths: LakehousePaths) -> str:
    """Three refused rows, one of them for two reasons; gives the table's id."""
    rows = [refused(1, TOO_LOW), refused(2, TOO_LOW, of_day=2), refused(3, TOO_LOW, NO_KEY, of_day=2)]
    return quarantine(paths, ORDERS, *rows)


def test_each_reason_has_its_rows_its_intervals_and_its_last_batch(paths: LakehousePaths, orders: str) -> None:
    assert orders
    assert refusals(ORDERS, paths) == [
        Refusal(TOO_LOW, RowStatus.OPEN, rows=3, first_seen=SEEN, first=FIRST, last=FIRST + DAY, batch_seq=2),
        Refusal(NO_KEY, RowStatus.OPEN, 1, first_seen=SEEN + DAY, first=FIRST + DAY, last=FIRST + DAY, batch_seq=2),
    ]
    assert refusals("gold.revenue_daily", paths) == []


def test_rows_come_newest_batch_first_and_can_be_chosen(paths: LakehousePaths, orders: str) -> None:
    def ids(**wanted: object) -> list[str]:
        return [row.id for row in quarantined_rows(ORDERS, paths, RowFilter(**wanted))]

    QuarantineEvents(paths).record(RowEvent.DISCARDED, ORDERS, orders, ["r2"], ANN)
    assert ids() == ["r3", "r1"]
    assert ids(statuses=tuple(RowStatus)) == ["r2", "r3", "r1"]
    assert ids(reason="not_null") == ["r3"]
    assert ids(starts=(day(1).start,)) == ["r1"]
    assert ids(ids=("r3", "r9")) == ["r3"]
    assert count_by_status(ORDERS, paths) == {RowStatus.OPEN: 2, RowStatus.DISCARDED: 1}
    assert quarantined_rows("gold.revenue_daily", paths, RowFilter()) == []


def test_a_mended_row_is_tried_as_it_was_mended(paths: LakehousePaths, orders: str) -> None:
    mended = ReceivedRow("r1", '{"order_id":"o1","amount":7}', "amount = 7")
    QuarantineEvents(paths).record_fixed(ORDERS, orders, [mended], ANN)
    (row,) = quarantined_rows(ORDERS, paths, RowFilter(statuses=(RowStatus.FIXED,)))
    assert row.to_try == mended


def test_what_became_of_rows_of_a_table_that_was_built_anew_does_not_count(paths: LakehousePaths, orders: str) -> None:
    QuarantineEvents(paths).record(RowEvent.DISCARDED, ORDERS, "the id of an earlier table", ["r1"], ANN)
    assert orders
    assert count_by_status(ORDERS, paths) == {RowStatus.OPEN: 3}


def test_rows_of_an_earlier_table_of_the_name_are_none_of_this_one(paths: LakehousePaths, orders: str) -> None:
    quarantine(paths, ORDERS, refused(9, TOO_LOW), table_id="the id of an earlier table")
    assert orders
    assert count_by_status(ORDERS, paths) == {RowStatus.OPEN: 3}
    shutil.rmtree(paths.table(ORDERS))
    assert quarantined_rows(ORDERS, paths, RowFilter()) == []


def test_rows_that_wait_for_too_long_are_warned_of(paths: LakehousePaths, orders: str) -> None:
    spec = silver_spec(quarantine={"warn_after": "36 hours"})
    assert ageing_note(spec, paths, SEEN + DAY) == ()
    (note,) = ageing_note(spec, paths, SEEN + 2 * DAY)
    assert note.startswith(
        "1 rows of silver.orders wait in quarantine for more than 36 hours, the first since 2026-01-01"
    )
    QuarantineEvents(paths).record(RowEvent.DISCARDED, ORDERS, orders, ["r1"], ANN)
    assert ageing_note(spec, paths, SEEN + 2 * DAY) == ()
    assert ageing_note(gold_spec(), paths, SEEN + 99 * DAY) == ()
