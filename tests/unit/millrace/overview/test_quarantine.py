"""Why and for how long rows wait in quarantine, and the history of one of them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from millrace.contracts.spec.table_spec import SilverSpec
from millrace.control.quarantine.events import Decision, QuarantineEvents, RowEvent
from millrace.control.quarantine.stored_rows import StoredRows
from millrace.overview.quarantine import row_history, waiting_rows
from millrace.paths import LakehousePaths
from tests.support.documents.specs import silver_spec
from tests.support.ledger.quarantine_rows import SEEN, quarantine, refused
from tests.support.silver.known_customers import UNKNOWN, shop_documents

ORDERS, TOO_LOW, NO_KEY = silver_spec(), "expect_between(amount): no negative prices", "not_null(order_id)"
ANN = Decision("ann", "a test order", "a run")
DAY = timedelta(days=1)


@pytest.fixture
def paths(tmp_path: Path) -> LakehousePaths:
    return LakehousePaths(tmp_path)


def test_the_sentence_says_how_many_rows_wait_and_for_how_long(paths: LakehousePaths) -> None:
    assert waiting_rows(ORDERS, StoredRows(ORDERS.table, paths), SEEN).answer == "No row waits in quarantine."
    quarantine(paths, ORDERS.table, refused(1, TOO_LOW), refused(2, TOO_LOW, of_day=2), refused(3, NO_KEY, of_day=2))
    for after, answer in (
        (2 * DAY, "all have waited for less than 7 days."),
        (7.5 * DAY, "1 of them has waited for more than 7 days."),
        (9 * DAY, "all of them have waited for more than 7 days."),
    ):
        waiting = waiting_rows(ORDERS, StoredRows(ORDERS.table, paths), SEEN + after)
        assert waiting.answer == f"3 rows wait in quarantine, for 2 different reasons; {answer}"
        assert [(each.reason, each.rows) for each in waiting.reasons] == [(TOO_LOW, 2), (NO_KEY, 1)]


def test_the_sentence_says_how_many_rows_need_nobody(paths: LakehousePaths) -> None:
    orders = SilverSpec.model_validate({**shop_documents()[-1], "domain": "shop"})
    quarantine(paths, ORDERS.table, refused(9, NO_KEY))
    for rows, words in (
        (1, " 1 of them waits for another table and needs nobody."),
        (2, " 2 of them wait for another table and need nobody."),
    ):
        quarantine(paths, ORDERS.table, refused(rows, UNKNOWN))
        answer = waiting_rows(orders, StoredRows(ORDERS.table, paths), SEEN).answer
        assert answer.startswith(f"{rows + 1} rows wait in quarantine")
        assert answer.endswith(words)


def test_a_row_has_the_history_of_its_own_decisions(paths: LakehousePaths) -> None:
    table_id = quarantine(paths, ORDERS.table, refused(1, TOO_LOW), refused(2, TOO_LOW))
    events = QuarantineEvents(paths)
    events.record(RowEvent.DISCARDED, ORDERS.table, table_id, ["r1"], ANN)
    events.record(RowEvent.REOPENED, ORDERS.table, table_id, ["r1", "r2"], ANN)
    history = row_history(StoredRows(ORDERS.table, paths), "r1")
    assert (history.row.id, history.row.record) == ("r1", '{"order_id":"o1"}')
    assert [(event["event"], event["said_by"]) for event in history.events] == [
        ("discarded", "ann"),
        ("reopened", "ann"),
    ]
    assert waiting_rows(ORDERS, StoredRows(ORDERS.table, paths), SEEN).rows == 2
    for odd in ("r3", "", "' OR 1=1 --", "r%", "\0", "x" * 5000):
        assert row_history(StoredRows(ORDERS.table, paths), odd) is None
