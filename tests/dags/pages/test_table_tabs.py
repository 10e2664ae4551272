"""The tabs Quality, Files, Quarantine and Storage: real requests to Airflow's real API server, about a real ledger."""

from __future__ import annotations

import os
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from fastapi.testclient import TestClient

from lakehouse_airflow.pages import table_page
from lakehouse_airflow.ui.links import REPLAY_DAG_ID, VACUUM_DAG_ID, lakehouse_path, table_path, trigger_path
from millrace.clock import utc_now
from millrace.control.ledger.holds import HoldEvent, Holds
from millrace.control.ledger.resolution import table_id
from millrace.control.maintenance.health import StorageState
from millrace.control.maintenance.health_days import HealthDay, HealthDays
from millrace.control.ops_tables import OpsTables
from millrace.control.quarantine.events import Decision, QuarantineEvents, RowEvent
from millrace.settings import Settings
from tests.support.airflow.logins import login
from tests.support.airflow.shown_lakehouse import EVIL
from tests.support.airflow.shown_page import show
from tests.support.ledger.quarantine_rows import quarantine, refused

pytestmark = pytest.mark.usefixtures("shown_lakehouse")

MEASURES: dict[str, Any] = {"storage": StorageState.TO_MAINTAIN, "small_files": 1, "old_size": 2500, "log_size": 1}
ROW = f"{table_path('bronze.orders', 'quarantine')}?row=r1"


def text(server: TestClient, path: str) -> str:
    return show(server, path).words


@pytest.mark.parametrize(
    ("table", "tab", "sentence"),
    [
        ("silver.orders", "quality", "1 of 1 rule failed on version 2; readers use version 1."),
        ("bronze.never", "quality", "No gate has checked this table yet."),
        ("bronze.orders", "files", "1 landing file could not be loaded: the records in it are missing."),
        ("bronze.never", "files", "No run has seen a landing file yet."),
        ("bronze.orders", "quarantine", "4 rows wait in quarantine, for one reason; all of them have waited for more"),
        ("silver.orders", "quarantine", "No row waits in quarantine."),
        ("bronze.orders", "storage", "The next maintenance leaves the files as they are."),
        ("bronze.never", "storage", "The table was never written: it has no files yet."),
    ],
)
def test_a_tab_begins_with_its_answer(server: TestClient, table: str, tab: str, sentence: str) -> None:
    assert sentence in text(server, table_path(table, tab))


def test_the_storage_shows_for_whose_sake_vacuum_is_refused(
    server: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, reader = table_path("silver.orders", "storage"), "readers of the certified version"
    assert "VACUUM is refused" not in text(server, path)
    assert f"{reader} 3 it is the newest" in text(server, table_path("bronze.orders", "storage"))
    monkeypatch.setattr(table_page, "utc_now", lambda: utc_now() + timedelta(days=16))
    assert "ago VACUUM is refused" in show(server, path).row(reader)
    assert "cut off readers of the certified version (version 1)" in text(server, path)


def test_the_storage_shows_holds_and_the_form_of_a_vacuum_that_a_person_has_to_allow(server: TestClient) -> None:
    path, settings = table_path("silver.orders", "storage"), Settings()
    old = Path(str(settings.paths.table("silver.orders"))) / "old.parquet"
    old.touch()
    os.utime(old, (0, 0))
    holds, form = Holds(settings.paths), trigger_path(VACUUM_DAG_ID, table="silver.orders")
    assert form not in show(server, path).links, "it keeps old files for 30 days"
    holds.record(HoldEvent.SET, "case-17", ["silver.orders"], said_by="ann", why=EVIL)
    page = show(server, path)
    assert "ann set the hold case-17 " in page.words
    assert f" ago, so that nothing is deleted: {EVIL}" in page.words
    holds.record(HoldEvent.RELEASED, "case-17", ["silver.orders"], said_by="ann", why="closed")
    assert "the hold case-17" not in text(server, path)
    spec = next(settings.tables.rglob("silver/**/orders.yaml"))
    stated = spec.read_text()
    spec.write_text(f"{stated}\nmaintenance: {{vacuum: {{retain: 24 hours}}}}\n")
    DeltaTable(str(old.parent)).alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 24 hours"})
    try:
        assert form in show(server, path).links
    finally:
        spec.write_text(stated)


def test_the_storage_has_the_trend_of_the_last_days_and_the_lakehouse_what_the_last_one_found(
    server: TestClient,
) -> None:
    paths = Settings().paths
    days = tuple(HealthDay(day=date(2026, 1, n), files=n, size=n * 10**6, **MEASURES) for n in (3, 5))
    stored = HealthDays(table_id=table_id(paths.table("bronze.orders")), days=days)
    OpsTables(paths).states.change("bronze.orders", (HealthDays, lambda _: stored))
    trend = text(server, table_path("bronze.orders", "storage")).partition("On the days of maintenance ")[2]
    expected = ("Files 5", "Small files 1", "Size 5.0 MB", "Old files 2.5 kB")
    assert [words for words in expected if words not in trend] == []
    assert "to be maintained on 2026-01-05" in show(server, lakehouse_path("tables")).row("bronze.orders")


def test_a_rule_has_its_result_and_the_values_that_fail(server: TestClient) -> None:
    rule = "expect_column_max_to_be_between(amount, max_value=9)"
    page = show(server, table_path("silver.orders", "quality"))
    [result, values] = [" ".join(row) for row in page.rows if row[:1] == [rule]]
    assert result.startswith(f"{rule} failed {EVIL}")
    assert values == f"{rule} : {EVIL}"
    html = server.get(table_path("silver.orders", "quality"), headers=login(server, "bob")).text
    assert "expect_<wbr>column_<wbr>max_<wbr>to_<wbr>be_<wbr>between<wbr>(amount" in html, "it breaks between words"


def test_a_file_has_its_state_and_a_failed_one_a_command_that_is_safe_to_paste(server: TestClient) -> None:
    path = table_path("bronze.orders", "files")
    page = show(server, path)
    assert "loaded" in page.row(f"orders/7 {EVIL}.json")
    assert "lakehouse replay 'orders/$(reboot) <script>alert('\"'\"'x'\"'\"')</script>" in page.words
    give_up = {"action": "give up a landing file", "file": f"orders/$(reboot) {EVIL}.json"}
    assert trigger_path(REPLAY_DAG_ID, table="bronze.orders", **give_up) in page.links
    assert show(server, f"{path}?begins=orders/5").row(f"orders/5 {EVIL}.json")
    assert "orders/5" not in text(server, f"{path}?day=2013-01-02")


@pytest.mark.parametrize("odd", ["x", "0001-01-01", "9999-12-31", "9999-12-31T23:59:59.999999Z", EVIL, "-1", "1e9"])
def test_no_text_in_an_address_breaks_a_tab(server: TestClient, odd: str) -> None:
    fields = {"files": ("day", "before", "begins"), "quarantine": ("reason", "status", "after")}
    for tab, names in (*fields.items(), ("quarantine", ("row",))):
        query = dict.fromkeys(names, odd)
        answer = server.get(table_path("bronze.orders", tab), params=query, headers=login(server, "ann"))
        assert (answer.status_code, "<script>" in answer.text) == (200, False)


def test_rows_lead_to_the_form_that_is_filled_in(server: TestClient) -> None:
    links = show(server, table_path("bronze.orders", "quarantine")).links
    assert trigger_path(REPLAY_DAG_ID, table="bronze.orders", reason=f"rule: {EVIL}") in links
    assert "?row=r1" in links
    page = show(server, ROW)
    assert trigger_path(REPLAY_DAG_ID, table="bronze.orders", ids="r1") in page.links
    fix = trigger_path(REPLAY_DAG_ID, table="bronze.orders", ids="r1", set_column="amount", set_how="set")
    assert fix in page.links
    assert page.row("amount") == "amount 100000000000000000000 Fix amount"
    assert page.row("day") == "day null Fix day", "the row was received without a value"
    assert fix.replace("amount", "day") in page.links
    assert "reopened <script>" in page.words, "the history names who decided"
    assert trigger_path(REPLAY_DAG_ID, table="bronze.orders", action="discard rows", ids="r1") in page.links


def test_a_record_that_could_not_be_parsed_offers_what_helps_and_no_replay(server: TestClient) -> None:
    """A replay does not parse the text again; a CSV record has the values as far as they were read."""
    table, why = "bronze.unchecked", "malformed record: it cannot be parsed as"
    cut = '{"order_id":"o2","_corrupt_record":"o2,1,2,3"}'
    rows = refused(1, f"{why} json", received='{"_corrupt_record":"{[b"}'), refused(2, f"{why} csv", received=cut)
    quarantine(Settings().paths, table, *rows)
    path = table_path(table, "quarantine")
    of_json, of_csv, reasons = (show(server, f"{path}{row}") for row in ("?row=r1", "?row=r2", ""))
    as_read = {"table": table, "ids": "r2", "set_column": "_corrupt_record", "set_how": "set to null"}
    as_read_link = trigger_path(REPLAY_DAG_ID, **as_read)
    assert as_read_link in of_csv.links
    discard = trigger_path(REPLAY_DAG_ID, table=table, action="discard rows", ids="r1")
    forms = [link for link in of_json.links if REPLAY_DAG_ID in link]
    assert set(forms) == {discard}
    assert not [link for link in of_csv.links if "set_column=order_id" in link], "it would stay unparsed"
    for page in (of_json, of_csv):
        assert "Replay as it is" not in page.words
        assert "a replay does not read it again" in page.words
        assert f"lakehouse quarantine replay {table} --rows rows.jsonl" in page.words
    assert not [link for link in reasons.links if REPLAY_DAG_ID in link and "discard" not in link]


def test_rows_come_in_parts(server: TestClient) -> None:
    path = table_path("bronze.orders", "quarantine")
    assert "4 rows" in text(server, path)
    links = show(server, f"{path}?after=r1").links
    assert [link for link in links if link.startswith("?row=")] == ["?row=r2", "?row=r3"]
    assert "0 rows" in text(server, f"{path}?status=discarded")
    assert "has no row nothing in quarantine" in text(server, f"{path}?row=nothing")


def test_a_row_that_somebody_gave_up_says_why_and_can_wait_again(server: TestClient) -> None:
    paths, table = Settings().paths, "bronze.orders"
    said = Decision("ann", "the sensor hung upside down", "manual__1")
    QuarantineEvents(paths).record(RowEvent.DISCARDED, table, table_id(paths.table(table)), ["r0"], said)
    page = show(server, f"{table_path(table, 'quarantine')}?row=r0")
    assert "Somebody gave it up. Let it wait again" in page.words
    assert "the sensor hung upside down" in page.words
    assert trigger_path(REPLAY_DAG_ID, table=table, action="reopen rows", ids="r0") in page.links
    QuarantineEvents(paths).record(RowEvent.REOPENED, table, table_id(paths.table(table)), ["r0"], said)
