"""The order of a domain's tasks: each table waits for the gates of the tables that it reads."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakehouse_airflow.assets import table_asset
from lakehouse_airflow.factory import build_domain_dag
from tests.support.documents.specs import gold_document, write_specs
from tests.support.silver.enriched_orders import CHAIN, CUSTOMERS, ENRICHED, ORDERS, enriched_orders
from tests.support.silver.known_customers import known_customer, shop_documents
from tests.support.silver.two_shops import BRANCH, SILVER, WEB, two_shops

START = datetime(2013, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("domain", "gates"), [("shop", {"bronze.orders_gate", "silver.z_gate"}), ("crm", {"bronze.orders_gate"})]
)
def test_a_table_whose_rows_wait_for_another_one_is_written_after_its_gate_in_the_same_dag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, domain: str, gates: set[str]
) -> None:
    monkeypatch.setenv("LAKEHOUSE_TABLES", str(tmp_path))
    received, customers, *orders = shop_documents(known_customer(other_table="silver.z"))
    write_specs(tmp_path, received, {**customers, "table": "silver.z"}, domain=domain)
    write_specs(tmp_path, *orders)
    dag = build_domain_dag("shop", schedule="0 0 * * *", start_date=START, owner="platform")
    assert dag.get_task("silver.orders").upstream_task_ids == gates
    assert [asset.name for asset in dag.get_task("silver.orders_gate").inlets] == ["bronze.orders", "silver.z"]


def test_a_gold_table_waits_once_for_the_gate_of_a_gold_table_that_it_reads_however_often(tables: Path) -> None:
    of_revenue = {"table": "gold.revenue_daily"}
    sources = {"o": of_revenue, "p": {**of_revenue, "join": "left", "on": "o.day = p.day"}}
    twice = {"sources": sources, "refresh_from": {"o": "day", "p": "day"}, "measures": {"n": "sum(o.orders)"}}
    write_specs(tables, gold_document("gold.first", **twice))
    dag = build_domain_dag("shop", schedule="0 0 * * *", start_date=START, owner="platform")
    assert dag.get_task("gold.first").upstream_task_ids == {"gold.revenue_daily_gate"}
    assert [asset.name for asset in dag.get_task("gold.first_gate").inlets] == ["gold.revenue_daily"]
    write_specs(tables, gold_document(sources={"o": {"table": "gold.first"}}, measures={"n": "sum(o.n)"}))
    dag = build_domain_dag("shop", schedule="0 0 * * *", start_date=START, owner="platform")
    assert "read one another: gold.first -> gold.revenue_daily -> gold.first" in "".join(
        str(dag.get_task(table).doc_md) for table in ("gold.first", "gold.revenue_daily")
    )
    assert len(dag.tasks) == 9


def test_a_silver_table_waits_for_the_gates_of_the_silver_tables_that_it_reads(tables: Path) -> None:
    write_specs(tables, *enriched_orders())
    dag = build_domain_dag("shop", schedule="0 * * * *", start_date=START, owner="platform")
    assert dag.get_task(ENRICHED).upstream_task_ids == {f"{ORDERS}_gate", f"{CUSTOMERS}_gate"}
    assert list(dag.task_group.children) == ["bronze", "silver", "gold"]
    assert dag.get_task(CHAIN[-1]).upstream_task_ids == {f"{ENRICHED}_gate"}
    assert dag.task_group.children["silver"].children.keys() >= {ENRICHED, f"{ENRICHED}_gate"}
    assert [asset.name for asset in dag.get_task(f"{ENRICHED}_gate").inlets] == [ORDERS, CUSTOMERS]
    write_specs(tables, enriched_orders()[4], domain="reports")
    (tables / "silver" / "shop" / "orders_enriched.yaml").unlink()
    dag = build_domain_dag("reports", schedule=table_asset(ORDERS), start_date=START, owner="platform")
    assert dag.get_task(ENRICHED).upstream_task_ids == set(), "a table of another domain is an asset"
    assert [asset.name for asset in dag.get_task(f"{ENRICHED}_gate").inlets] == [ORDERS, CUSTOMERS]


def test_a_silver_table_waits_for_the_gates_of_all_its_sources(tables: Path) -> None:
    write_specs(tables, *two_shops())
    dag = build_domain_dag("shop", schedule="0 0 * * *", start_date=START, owner="platform")
    assert dag.get_task(SILVER).upstream_task_ids == {f"{WEB}_gate", f"{BRANCH}_gate"}
    assert {asset.name for asset in dag.get_task(f"{SILVER}_gate").inlets} == {WEB, BRANCH}
