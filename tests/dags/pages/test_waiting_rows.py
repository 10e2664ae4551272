"""The tab Quarantine of a table whose rows wait for another table, by real requests to Airflow's API server."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from lakehouse_airflow.ui.links import table_path
from millrace.clock import utc_now
from millrace.settings import Settings
from tests.support.airflow.shown_page import show
from tests.support.documents.specs import write_specs
from tests.support.ledger.quarantine_rows import quarantine, refused
from tests.support.silver.known_customers import ORDERS, UNKNOWN, known_customer, shop_documents

PATH = table_path(ORDERS, "quarantine")
NOTHING_NEEDED = "Nothing is needed: a run of the table replays it once silver.customers has what it refers to."


def test_a_row_that_waits_for_a_table_says_until_when_and_needs_nothing_and_another_one_a_person(
    server: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHOUSE_TABLES", str(tmp_path))
    now = utc_now()
    write_specs(tmp_path, *shop_documents(known_customer(wait_at_most="7 days")))
    # `r2` has waited for too long, and `r3` also has a price below zero.
    rows = refused(1, UNKNOWN, first_seen=now), refused(2, UNKNOWN), refused(3, UNKNOWN, "price", first_seen=now)
    quarantine(Settings().paths, ORDERS, *rows)
    waits = f"waits for silver.customers until {now + timedelta(days=7):%Y-%m-%d %H:%M} UTC"

    page = show(server, PATH)
    answer = "3 rows wait in quarantine, for 2 different reasons; 1 of them has waited for more than 7 days."
    assert f"{answer} 1 of them waits for another table and needs nobody." in page.words
    assert f"open {waits}" in page.row("r1")
    for row in ("r2", "r3"):
        assert "open" in page.row(row)
        assert "waits for" not in page.row(row)
    texts = {row: show(server, f"{PATH}?row={row}").words for row in ("r1", "r2", "r3")}
    assert waits in texts["r1"]
    assert {row: NOTHING_NEEDED in text for row, text in texts.items()} == {"r1": True, "r2": False, "r3": False}
    assert all("Replay as it is" in text for text in texts.values()), "a person may try each of them"
