"""The page Lineage: real requests to Airflow's real API server, about real specs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from lakehouse_airflow.pages.paths import lineage_path
from lakehouse_airflow.ui.links import lakehouse_path, table_path
from millrace.settings import Settings
from tests.support.airflow.logins import login
from tests.support.airflow.shown_lakehouse import EVIL
from tests.support.airflow.shown_page import show
from tests.support.documents.specs import (
    Document,
    bronze_document,
    gold_document,
    query_document,
    silver_document,
    write_specs,
)

pytestmark = pytest.mark.usefixtures("shown_lakehouse")

TAG = "<script>alert(1)</script>"
PAGES = [
    lineage_path(),
    *(lineage_path(table) for table in ("bronze.orders", "silver.orders", "gold.revenue_daily", "bronze.wrong")),
    lineage_path("bronze.orders", "amount"),
    lineage_path("silver.orders", "day"),
    lineage_path("gold.revenue_daily", "orders"),
]


@pytest.fixture
def other_domain() -> Iterator[None]:
    """Specs of another domain: one with hostile SQL, one of gold that reads this domain."""
    specs = Settings().tables
    columns = {**silver_document()["columns"], "label": {"from": f"concat(order_id, '{TAG}')"}}
    gold = gold_document("gold.labels", sources={"o": {"table": "silver.labels"}}, measures={"m": "max(o.label)"})
    write_specs(specs, silver_document("silver.labels", columns=columns), gold, domain="other")
    yield
    for layer in ("silver", "gold"):
        shutil.rmtree(specs / layer / "other")


@pytest.mark.usefixtures("other_domain")
def test_no_page_holds_foreign_html(server: TestClient) -> None:
    for path in PAGES:
        show(server, path).require_own_html()
    for path in (lineage_path("silver.labels", "label"), lineage_path("gold.labels", "m")):
        page = show(server, path)
        page.require_own_html()
        assert f"concat(order_id, '{TAG}')" in page.words


def test_all_tables_are_shown_by_layer_with_their_state_and_lines_between_them(server: TestClient) -> None:
    page = show(server, lineage_path())
    assert page.row("orders") == "orders refused", "the last one is that of silver"
    assert {"never never run", "wrong wrong spec", "revenue_daily never run"} <= {" ".join(row) for row in page.rows}
    assert page.tags.count("path") == 2
    assert {lineage_path("bronze.orders"), lineage_path("gold.revenue_daily")} <= set(page.links)


@pytest.mark.parametrize(
    "document",
    [
        gold_document("gold.a", sources={"o": {"table": "gold.revenue_daily"}}, measures={"n": "sum(o.orders)"}),
        query_document("silver.a", keys=["order_id"]),
    ],
)
def test_a_table_stands_below_the_table_of_its_layer_that_it_reads_with_a_line_between_them(
    server: TestClient, document: Document
) -> None:
    specs, table = Settings().tables, document["table"]
    write_specs(specs, document, domain="more")
    try:
        page = show(server, lineage_path())
        assert page.tags.count("path") == 3
        tables = (lineage_path(document["sources"]["o"]["table"]), lineage_path(table))
        assert [link for link in page.links if link in tables] == list(tables)
        assert show(server, table_path(table)).row("order_id" if "query" in document else "day")
    finally:
        shutil.rmtree(specs / table.partition(".")[0] / "more")


@pytest.mark.usefixtures("other_domain")
def test_a_filter_leaves_tables_columns_and_what_is_beside_a_domain(server: TestClient) -> None:
    of_domain = show(server, f"{lineage_path()}?domain=other")
    assert "2 of 11 tables" in of_domain.words
    assert ["orders", "certified", "shop"] in of_domain.rows, "labels is merged from it"
    found = show(server, f"{lineage_path()}?q=Label")
    assert lineage_path("silver.labels", "label") in found.links
    assert "2 of 11 tables" in found.words
    assert "No table fits this filter" in show(server, f"{lineage_path()}?q=nothing").words


def test_a_table_has_its_neighbours_and_where_each_column_comes_from_and_goes(server: TestClient) -> None:
    page = show(server, lineage_path("silver.orders"))
    assert page.tags.count("path") == 2
    rows = {row[0]: " ".join(row[1:]) for row in page.rows if row}
    assert rows["amount"] == "bronze.orders.amount gold.revenue_daily.revenue"
    assert "the rows of gold.revenue_daily" in rows["day"]
    assert "count of rows" in show(server, lineage_path("gold.revenue_daily")).words
    assert "are not known" in show(server, lineage_path("bronze.wrong")).words


def test_a_column_is_followed_to_what_is_delivered_and_to_all_that_its_change_breaks(server: TestClient) -> None:
    page = show(server, lineage_path("silver.orders", "day"))
    for words in (
        "1 column and the rows of 1 table depend on it.",
        "2 places in 1 spec must change with it; until then 1 table is not run.",
        "bronze.orders.day as it is day of files orders/date={interval_start:%Y-%m-%d}/*.json",
        "computed cast(day as date)",
        "gold.revenue_daily group group_by.day line",
        "gold.revenue_daily what is computed again refresh_from.o line",
        "no run writes gold.revenue_daily until",
    ):
        assert words in page.words
    assert {table_path("gold.revenue_daily", "spec"), lineage_path("gold.revenue_daily", "day")} <= set(page.links)
    assert "No spec names it." in show(server, lineage_path("gold.revenue_daily", "orders")).words


@pytest.mark.parametrize("odd", [EVIL, "größe", "../../etc", "x" * 999])
def test_no_text_in_an_address_breaks_a_page(server: TestClient, odd: str) -> None:
    statuses = []
    for query in ({"q": odd}, {"domain": odd}, {"table": odd}, {"table": "silver.orders", "column": odd}):
        answer = server.get(lineage_path(), params=query, headers=login(server, "ann"))
        assert "<script>" not in answer.text or answer.headers["content-type"] == "application/json"
        statuses.append(answer.status_code)
    assert statuses == [200, 200, 404, 404]


def test_of_very_many_tables_the_domains_come_first_and_a_layer_is_not_endless(server: TestClient) -> None:
    specs = Settings().tables
    write_specs(specs, *(bronze_document(f"bronze.many_{number}") for number in range(70)), domain="many")
    try:
        page = show(server, lineage_path())
        assert page.row("many") == "many 70 0 0 70 never run"
        assert "?domain=many" in page.links
        assert "and 20 more bronze tables" in show(server, f"{lineage_path()}?domain=many").words
    finally:
        shutil.rmtree(specs / "bronze" / "many")


def test_lists_and_tables_lead_to_the_page(server: TestClient) -> None:
    assert lineage_path() in show(server, lakehouse_path("tables")).links
    assert lineage_path("silver.orders") in show(server, table_path("silver.orders", "lineage")).links
    assert lineage_path("silver.orders", "amount") in show(server, table_path("silver.orders")).links
    assert lineage_path("silver.orders", "amount") == "/lakehouse/lineage?table=silver.orders&column=amount"
