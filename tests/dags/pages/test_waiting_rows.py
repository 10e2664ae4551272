"""The tab Quarantine of a table whose rows wait for another table, by real requests to Airflow's API server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from fastapi.testclient import TestClient

from include.clock import utc_now
from include.settings import Settings
from lakehouse_airflow.ui.links import table_path
from tests.support.airflow.logins import login
from tests.support.airflow.shown_page import Shown
from tests.support.documents.specs import write_specs
from tests.support.ledger.quarantine_rows import quarantine, refused
from tests.support.silver.known_customers import ORDERS, UNKNOWN, known_customer, shop_documents

PATH = table_path(ORDERS, "quarantine")
NOTHING_NEEDED = "Nothing is needed: a run of the table replays it once silver.customers has what it refers to."


@pytest.fixture(scope="module")
def until(server: TestClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[datetime]:
    """The end of the wait of `r1`; `r2` has waited for too long, and `r3` also has a price below zero."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAKEHOUSE_TABLES", str(tmp_path_factory.mktemp("specs")))
        settings, now = Settings(), utc_now()
        write_specs(settings.tables, *shop_documents(known_customer(wait_at_most="7 days")))  # type: ignore[arg-type]
        rows = refused(1, UNKNOWN, first_seen=now), refused(2, UNKNOWN), refused(3, UNKNOWN, "price", first_seen=now)
        quarantine(settings.paths, ORDERS, *rows)
        yield now + timedelta(days=7)


def show(server: TestClient, path: str) -> Shown:
    return Shown(server.get(path, headers=login(server, "ann")))


def test_the_list_says_which_row_waits_for_which_table_and_until_when(server: TestClient, until: datetime) -> None:
    page = show(server, PATH)
    answer = "3 rows wait in quarantine, for 2 different reasons; 1 of them has waited for more than 7 days."
    assert f"{answer} 1 of them waits for another table and needs nobody." in " ".join(page.texts)
    assert f"open waits for silver.customers until {until:%Y-%m-%d %H:%M} UTC" in page.row("r1")
    for row in ("r2", "r3"):
        assert "open" in page.row(row)
        assert "waits for" not in page.row(row)


def test_a_row_that_waits_needs_nothing_and_another_one_a_person(server: TestClient, until: datetime) -> None:
    texts = {row: " ".join(show(server, f"{PATH}?row={row}").texts) for row in ("r1", "r2", "r3")}
    assert f"waits for silver.customers until {until:%Y-%m-%d %H:%M} UTC" in texts["r1"]
    assert {row: NOTHING_NEEDED in text for row, text in texts.items()} == {"r1": True, "r2": False, "r3": False}
    assert all("Replay as it is" in text for text in texts.values()), "a person may try each of them"
