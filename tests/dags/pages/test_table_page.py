"""The page of a table: real requests to Airflow's real API server, about a real ledger."""

from __future__ import annotations

import shutil
from collections import Counter
from typing import Any

import pytest
from fastapi.testclient import TestClient

from lakehouse_airflow.ui.links import lakehouse_path, run_path, table_path
from millrace.overview.lakehouse import LakehouseReader
from millrace.settings import Settings
from tests.support.airflow.logins import login
from tests.support.airflow.shown_page import show

pytestmark = pytest.mark.usefixtures("shown_lakehouse")

ALL_TABS = ["overview", "versions", "quality", "files", "quarantine", "storage", "lineage", "spec"]
TABS = {
    **dict.fromkeys(("bronze.orders", "bronze.bills", "bronze.never"), ALL_TABS),
    "bronze.wrong": ["overview", "versions", "quality", "lineage", "spec"],
    "silver.orders": [tab for tab in ALL_TABS if tab != "files"],
    "gold.revenue_daily": [tab for tab in ALL_TABS if tab not in ("files", "quarantine")],
}
VERSIONS = table_path("bronze.orders", "versions")


@pytest.mark.parametrize("table", TABS)
def test_a_page_leads_to_the_tabs_that_the_table_has_and_each_holds_no_foreign_html(
    server: TestClient, table: str
) -> None:
    tabs = {table_path(table, tab) for tab in TABS[table]}
    assert tabs == set(show(server, table_path(table)).links) & {table_path(table, tab) for tab in ALL_TABS}
    for path in tabs:
        show(server, path).require_own_html()


def test_the_first_tab_says_what_is_in_the_table_and_how_to_read_it(server: TestClient) -> None:
    text = show(server, table_path("silver.orders")).words
    assert "refused for less than a minute" in text
    assert "order_id key string not null" in text
    assert "Certified version 1 newest 2" in text
    path = Settings().paths.table("silver.orders")
    assert f"SELECT * FROM delta_scan('{path}', version = 1);" in text
    assert "Reads bronze.orders Is read by gold.revenue_daily" in text


def test_the_versions_name_run_rows_and_certificate_and_older_ones_are_on_further_pages(server: TestClient) -> None:
    def rows(query: str) -> list[str]:
        return [" ".join(row) for row in show(server, VERSIONS + query).rows if row and row[0].isdecimal()]

    newest = rows("")[0]
    assert newest.startswith("3 readers use it")
    assert "load of 2013-01-03 batch 3, run-3 (not found in Airflow) 7 7" in newest
    assert newest.endswith("certified")
    assert [row.split()[0] for row in rows("?upto=2")] == ["2", "1"]
    for odd in ("", "?upto=x", "?upto=-1", f"?upto={'9' * 30}", "?upto="):
        assert [row.split()[0] for row in rows(odd)] == ["3", "2", "1"]
    assert run_path("shop", "run-3") not in show(server, VERSIONS).links
    refused = "refused expect_column_max_to_be_between(amount, max_value=9) observed <script>"
    assert refused in show(server, table_path("silver.orders", "versions")).words


def test_the_lineage_says_how_far_each_table_has_read(server: TestClient) -> None:
    text = show(server, table_path("silver.orders", "lineage")).words
    assert "bronze.orders certified version 3 shop-data" in text
    assert "silver.orders has read bronze.orders: nothing yet, version 3 is certified" in text
    assert "gold.revenue_daily never run silver.orders: nothing yet, version 1 is certified" in text
    assert "delivers them" in show(server, table_path("bronze.orders", "lineage")).words
    assert "bronze.orders 2 steps away" in show(server, table_path("gold.revenue_daily", "lineage")).words


def test_a_wrong_spec_is_shown_with_its_problems(server: TestClient) -> None:
    text = show(server, table_path("bronze.wrong", "spec")).words
    assert "3 suorce unknown key did you mean 'source'?" in text
    assert "table: bronze.wrong" in text


def test_there_is_no_page_of_another_table_or_tab(server: TestClient) -> None:
    for path in (("bronze.nothing",), ("bronze.orders", "nothing"), ("../../etc/passwd",), ("x",)):
        assert server.get(table_path(*path), headers=login(server, "ann")).status_code == 404


@pytest.mark.parametrize(("read", "times"), [("read_table", 1), ("catalog", 2)])
def test_a_spec_that_is_removed_while_its_page_is_made_is_not_found(
    server: TestClient, monkeypatch: pytest.MonkeyPatch, read: str, times: int
) -> None:
    file, path = Settings().tables / "bronze/shop/never.yaml", table_path("bronze.never", "spec")
    text, as_before, reads = file.read_text(), getattr(LakehouseReader, read), Counter[str]()
    assert "table: bronze.never" in show(server, path).words

    def read_then_remove(*arguments: Any) -> Any:
        result = as_before(*arguments)
        reads[read] += 1
        if reads[read] == times:
            file.unlink()
        return result

    monkeypatch.setattr(LakehouseReader, read, read_then_remove)
    try:
        answer = server.get(path, headers=login(server, "ann"))
    finally:
        file.write_text(text)
    assert (answer.status_code, "the spec of bronze.never was removed" in answer.text) == (404, True), answer.text


def test_a_spec_in_no_tables_place_has_a_page(server: TestClient) -> None:
    name, specs = "bronze/shop/deep/tickets.yaml", Settings().tables
    (specs / name).parent.mkdir()
    try:
        (specs / name).write_text("table: tickets\n")
        assert table_path(name) in show(server, lakehouse_path("tables")).links
        for tab in ("", *TABS["bronze.wrong"]):
            assert f"{name} wrong spec" in show(server, table_path(name, tab)).words
    finally:
        shutil.rmtree((specs / name).parent)
