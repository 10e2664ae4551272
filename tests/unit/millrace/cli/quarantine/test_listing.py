"""`lakehouse quarantine list`, `show`, `discard` and `reopen`: the refused rows and the decisions about them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from millrace.cli.quarantine.listing import edit_lines
from millrace.contracts.job.requests import RowFilter
from millrace.contracts.row_status import RowStatus
from millrace.control.quarantine.edited_rows import edited_rows
from millrace.control.quarantine.events import Decision, QuarantineEvents, ReceivedRow, RowEvent
from millrace.control.quarantine.rows import quarantined_rows
from millrace.control.quarantine.stored_rows import QuarantinedRow, StoredRows
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.documents.specs import write_specs
from tests.support.ledger.quarantine_rows import quarantine, refused
from tests.support.silver.known_customers import UNKNOWN, known_customer, shop_documents
from tests.support.texts import texts

ORDERS = "silver.orders"
TOO_LOW, NO_KEY = "expect_between(amount): no [negative] prices", "not_null(order_id): every order has a number"
ROW = QuarantinedRow("r1", RowStatus.OPEN, (), "a.json", 1, datetime(2013, 1, 1, tzinfo=UTC), 1, None, None)
ANN = Decision("ann", "the till was wrong", "a run")


@pytest.fixture
def paths(settings: Settings) -> LakehousePaths:
    """Three refused rows of a silver table, one of them for two reasons, and one of bronze that was no record."""
    paths = settings.paths
    rows = [refused(1, TOO_LOW), refused(2, TOO_LOW, of_day=2), refused(3, TOO_LOW, NO_KEY, of_day=2)]
    quarantine(paths, ORDERS, *rows)
    broken = refused(0, "not a record: cannot be parsed", record="{[b]", source="orders/a.json", position=7)
    quarantine(paths, "bronze.orders", broken)
    return paths


def statuses(paths: LakehousePaths) -> dict[str, str]:
    rows = quarantined_rows(StoredRows(ORDERS, paths), RowFilter(statuses=tuple(RowStatus)))
    return {row.id: row.status.value for row in rows}


def test_the_list_has_tables_of_refused_rows_and_warns_of_old_ones(lakehouse: Lakehouse, paths: LakehousePaths) -> None:
    assert paths.quarantine(ORDERS).exists()
    answer = lakehouse("quarantine", "list")
    assert answer.exit_code == 0, answer.stderr
    for words in ("bronze.orders", "not a record", ORDERS, "no [negative] prices", "2013-01-02 00:00", "open"):
        assert words in answer.stdout
    assert "gold.revenue_daily" not in answer.stdout
    assert lakehouse("quarantine", "list", "--domain", "shop").stdout == answer.stdout
    late = "warning: 3 rows of silver.orders wait in quarantine for more than 7 days, the first since 2026-01-01"
    assert late in answer.stdout
    lakehouse("quarantine", "discard", ORDERS, "--all", "--why", "test orders")
    assert "rows of silver.orders wait" not in lakehouse("quarantine", "list").stdout


def test_a_row_is_shown_in_full_with_its_origin(lakehouse: Lakehouse, paths: LakehousePaths) -> None:
    assert paths.quarantine("bronze.orders").exists()
    answer = lakehouse("quarantine", "show", "bronze.orders")
    for words in ("orders/a.json", " 7 ", "{[b]", "1 of 1 quarantined row of bronze.orders"):
        assert words in answer.stdout
    rescued = refused(4, NO_KEY, received='{"order_id":"o4","_rescued":"{\\"amount\\":\\"12x\\"}"}')
    quarantine(paths, ORDERS, rescued)
    assert '_rescued: {"amount":"12x"}' in lakehouse("quarantine", "show", ORDERS).stdout, "null in the record"
    assert "1 of 4 quarantined" in lakehouse("quarantine", "show", ORDERS, "--limit", "1").stdout
    assert "2 of 2 quarantined" in lakehouse("quarantine", "show", ORDERS, "--reason", "not_null").stdout


def test_a_row_that_waits_for_another_table_is_shown_with_its_limit(lakehouse: Lakehouse, settings: Settings) -> None:
    write_specs(settings.tables, *shop_documents(known_customer(wait_at_most="7 days")))
    now = datetime.now(UTC)
    rows = [refused(1, UNKNOWN, first_seen=now), refused(2, UNKNOWN), refused(3, UNKNOWN, NO_KEY, first_seen=now)]
    quarantine(settings.paths, ORDERS, *rows)
    wait = f"waits for silver.customers until {now + timedelta(days=7):%Y-%m-%d %H:%M} UTC"
    waits = [wait in " ".join(lakehouse("quarantine", "show", ORDERS, row["row_id"]).stdout.split()) for row in rows]
    assert waits == [True, False, False], "the second one has waited for too long, the third one has no key"
    output = lakehouse("quarantine", "show", ORDERS).stdout
    assert "3 of 3 quarantined rows" in output
    assert (output.count("waits for"), output.count(" open ")) == (1, 2)
    listed = lakehouse("quarantine", "list").stdout
    assert "1 row of silver.orders waits for silver.customers, and will be replayed by itself" in listed


def test_a_row_selected_by_id_is_shown_with_its_history(lakehouse: Lakehouse, paths: LakehousePaths) -> None:
    events = QuarantineEvents(paths)
    target = quarantine(paths, ORDERS)
    events.record_fixes(ORDERS, target, [ReceivedRow("r1", '{"amount":7}', "amount = 7")], ANN)
    events.record(RowEvent.DISCARDED, ORDERS, target, ["r1"], Decision("bob", "no order at all", "another run"))
    output = lakehouse("quarantine", "show", ORDERS, "r1").stdout
    for words in ('{"amount":7}', "amount = 7; the till was wrong", "ann", "no order at all", "bob", "refused first"):
        assert words in output


@given(st.dictionaries(texts(), texts()), st.lists(texts()))
def test_exported_json_lines_can_be_read_as_edited_rows(record: dict[str, str], reasons: list[str]) -> None:
    rows = [
        replace(ROW, id=f"r{number}", reasons=tuple(reasons), received=json.dumps(record, ensure_ascii=number == 1))
        for number in (1, 2)
    ]
    shown = "\n".join(edit_lines(rows, lambda _: ()))
    editable = {"_rescued", "_corrupt_record"}
    expected = {name: value for name, value in record.items() if not name.startswith("_") or name in editable}
    assert [(row.id, json.loads(row.line)["record"]) for row in edited_rows(shown)] == [
        ("r1", expected),
        ("r2", expected),
    ]


def test_exported_rows_have_the_columns_without_a_value(lakehouse: Lakehouse, settings: Settings) -> None:
    paths = settings.paths
    DeltaTable.create(str(paths.table("bronze.orders")), pa.schema([("_offset", pa.int64()), ("colour", pa.string())]))
    unparsed = refused(2, "not a record", received='{"_corrupt_record":"{[b"}')
    quarantine(paths, "bronze.orders", refused(1, NO_KEY, received='{"amount":"7","_offset":1}'), unparsed)
    quarantine(paths, ORDERS, refused(1, TOO_LOW, received='{"order_id":"7"}'))
    shown = {
        table: [
            json.loads(line)["record"]
            for line in lakehouse("quarantine", "show", table, "--json").stdout.split("\n")
            if line
        ]
        for table in ("bronze.orders", ORDERS)
    }
    nulls = dict.fromkeys(("order_id", "day", "event_at", "event_seq", "colour"))
    assert shown["bronze.orders"] == [{"amount": "7", **nulls}, {"_corrupt_record": "{[b"}]
    assert shown[ORDERS] == [{"order_id": "7", "colour": None}], "silver receives what bronze stores"


def test_a_discarded_row_is_not_pending_until_it_is_reopened(lakehouse: Lakehouse, paths: LakehousePaths) -> None:
    answer = lakehouse("quarantine", "discard", ORDERS, "r3", "r1", "--why", "test orders")
    assert (answer.exit_code, answer.stdout) == (0, "2 rows of silver.orders discarded\n")
    assert statuses(paths) == {"r1": "discarded", "r2": "open", "r3": "discarded"}
    assert "1 of 1 quarantined" in lakehouse("quarantine", "show", ORDERS).stdout
    assert "2 of 2 quarantined" in lakehouse("quarantine", "show", ORDERS, "--status", "discarded").stdout
    assert "2 discarded: --status shows them" in lakehouse("quarantine", "list").stdout
    assert "Besides these" not in lakehouse("quarantine", "list", "--status", "discarded").stdout
    assert lakehouse("quarantine", "reopen", ORDERS, "--all").stdout == "2 rows of silver.orders reopened\n"
    assert set(statuses(paths).values()) == {"open"}


def test_a_decision_about_no_row_or_a_wrong_status_is_refused(lakehouse: Lakehouse, paths: LakehousePaths) -> None:
    for words, message in {
        ("discard", "--why", "so"): "state which rows",
        ("discard", "r9", "--why", "so"): "has no row 'r9'",
        ("discard", "r", "--why", "so"): "the beginning of 3 ids",
        ("reopen", "r1"): "row r1 is open: it cannot be",
    }.items():
        answer = lakehouse("quarantine", words[0], ORDERS, *words[1:])
        assert (answer.exit_code, message in " ".join(answer.stderr.split())) == (2, True), answer.stderr
    assert set(statuses(paths).values()) == {"open"}
