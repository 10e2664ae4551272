"""A DAG for any folder of specs, wrong ones among them."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from airflow.sdk import DeadlineAlert, DeadlineReference, SyncCallback
from airflow.serialization.serialized_objects import DagSerialization
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakehouse_airflow.assets import table_asset
from lakehouse_airflow.factory import build_domain_dag, build_gate_override_dag, build_maintenance_dag
from lakehouse_airflow.operators.maintenance_plan import MaintenancePlanOperator
from lakehouse_airflow.operators.spark_job import SparkJobOperator
from lakehouse_airflow.operators.table_write import TableWriteOperator
from lakehouse_airflow.sensors.landing import LandingSensor
from millrace.catalog import load_catalog
from millrace.errors import SpecError
from tests.support.documents.odd_specs import SPECS, write_mutated
from tests.support.documents.specs import (
    bronze_document,
    gold_document,
    silver_document,
    write_spec,
    write_specs,
)
from tests.support.silver.enriched_orders import CHAIN, CUSTOMERS, ENRICHED, ORDERS, enriched_orders
from tests.support.silver.known_customers import known_customer, shop_documents
from tests.support.silver.two_shops import BRANCH, SILVER, WEB, two_shops

START = datetime(2013, 1, 1, tzinfo=UTC)


@pytest.mark.usefixtures("tables")
def test_the_settings_of_a_dag_file_reach_every_task() -> None:
    dag = build_domain_dag(
        "shop",
        schedule="0 * * * *",
        start_date=START,
        owner="platform",
        first_day=date(2013, 1, 1),
        last_day=date(2013, 12, 31),
        title="The shop",
        owner_links={"sales": "mailto:sales@example.com"},
        conn_id="spark_cluster",
        execution_timeout=timedelta(minutes=5),
    )
    assert (dag.dag_id, dag.dag_display_name) == ("shop", "The shop")
    assert dag.owner_links == {"sales": "mailto:sales@example.com"}
    assert len(dag.tasks) == 7
    for task in dag.tasks:
        assert (task.first_day, task.last_day) == (date(2013, 1, 1), date(2013, 12, 31))
        assert task.execution_timeout == timedelta(minutes=5)
    assert [task.conn_id for task in dag.tasks if isinstance(task, SparkJobOperator)] == ["spark_cluster"] * 6
    owners = {task.task_id: task.owner for task in dag.tasks}
    assert (owners["bronze.orders.files"], owners["bronze.orders"]) == ("platform", "platform")
    assert (owners["silver.orders"], owners["silver.orders_gate"]) == ("sales", "sales")


@pytest.mark.usefixtures("tables")
def test_everything_that_airflow_offers_for_a_dag_and_its_tasks_can_be_given() -> None:
    deadline = DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT, interval=timedelta(hours=2), callback=SyncCallback(page_somebody)
    )
    given = {"max_active_runs": 3, "on_failure_callback": [page_somebody], "deadline": deadline, "tags": ["shop"]}
    tasks = {"pool": "large", "retries": 1, "retry_policy": None, "on_retry_callback": page_somebody}
    shop = build_domain_dag(
        "shop", schedule="0 0 * * *", start_date=START, owner="platform", default_args=tasks, **given
    )
    files = build_maintenance_dag(schedule="0 3 * * *", start_date=START, owner="platform", default_args=tasks, **given)
    for dag, with_spark in ((shop, 6), (files, 1)):
        assert (dag.max_active_runs, dag.tags, len(dag.deadline)) == (3, {"shop"}, 1)
        assert dag.has_on_failure_callback
        assert DagSerialization.to_dict(dag)
        assert len([task for task in dag.tasks if task.is_mapped or isinstance(task, SparkJobOperator)]) == with_spark
        for task in dag.tasks:
            pool = "default_pool" if isinstance(task, LandingSensor | MaintenancePlanOperator) else "large"
            assert (task.pool, task.retries, task.retry_policy, task.weight_rule) == (pool, 1, None, "absolute")
            assert task.on_retry_callback == [page_somebody]


def test_a_table_with_several_streams_is_written_for_several_days_at_once(tables: Path) -> None:
    sources = [{"table": "bronze.orders", "partitions": ["1"]}]
    shared = silver_document(sources=sources, partitioned_by=["order_id"], concurrent_by="order_id")
    del shared["source"]
    for document, silver in ((silver_document(), 1), (shared, None)):
        write_specs(tables, bronze_document(concurrent_by="interval"), document)
        dag = build_domain_dag("shop", schedule="0 0 * * *", start_date=START, owner="platform")
        limits = {task.table: task.max_active_tis_per_dag for task in dag.tasks if isinstance(task, TableWriteOperator)}
        assert limits == {"bronze.orders": None, "silver.orders": silver, "gold.revenue_daily": 1}


def test_a_bronze_table_waits_for_landing_files_but_not_for_messages(tables: Path) -> None:
    clicks = {"kafka": "main", "topics": ["clicks"], "format": "json"}
    # A table may have the name that the sensor of another one has in the UI.
    write_specs(tables, bronze_document("bronze.clicks", source=clicks), bronze_document("bronze.orders_files"))
    dag = build_domain_dag("shop", schedule="0 0 * * *", start_date=START, owner="platform")
    upstream = {table: dag.get_task(f"bronze.{table}").upstream_task_ids for table in ("clicks", "orders")}
    assert upstream == {"clicks": set(), "orders": {"bronze.orders.files"}}
    sensor = dag.get_task("bronze.orders.files")
    assert (sensor.upstream_task_ids, sensor.inlets, sensor.outlets) == (set(), [], [])
    assert (sensor.max_active_tis_per_dag, sensor.pool) == (None, "default_pool"), "it holds up no other day"
    writer = dag.get_task("bronze.orders")
    assert (writer.max_active_tis_per_dag, writer.deferrable) == (1, False)
    assert sensor.task_display_name == "bronze.orders files"
    assert "`orders/date={interval_start:%Y-%m-%d}`" in sensor.doc_md
    assert "at most\n1:15:00" in sensor.doc_md
    assert "bronze.clicks.files" not in dag.task_ids


def page_somebody(context: Any) -> None:
    """Stand for a callback of a DAG file."""


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("schedule", "waits_for"),
    [
        (table_asset("gold.sales"), {"gold.sales"}),
        ([table_asset("gold.sales"), table_asset("gold.stock")], {"gold.sales", "gold.stock"}),
    ],
)
def test_a_domain_may_start_when_tables_of_another_one_are_certified(schedule: Any, waits_for: set[str]) -> None:
    dag = build_domain_dag("shop", schedule=schedule, start_date=START, owner="platform")
    serialized = json.dumps(DagSerialization.to_dict(dag)["dag"]["timetable"])
    assert {table for table in ("gold.sales", "gold.stock") if f'"{table}"' in serialized} == waits_for


@pytest.mark.usefixtures("tables")
def test_an_unknown_domain_is_named_with_the_closest_one() -> None:
    with pytest.raises(SpecError, match=r"(?s)no table has the domain 'shops'.*shop"):
        build_domain_dag("shops", schedule="0 0 * * *", start_date=START, owner="platform")


@pytest.mark.parametrize(
    "text",
    ["table: silver.orders\nsource: silver.orders\n", "table: silver.orders\nsource: gold.revenue_daily\n", "a: ["],
)
def test_a_table_whose_spec_is_wrong_keeps_its_tasks_and_its_page_says_why(tables: Path, text: str) -> None:
    file = write_spec(tables, "silver/shop/orders.yaml", text)
    dag = build_domain_dag("shop", schedule="0 0 * * *", start_date=START, owner="platform")
    assert len(dag.tasks) == 7
    assert f"{file}:" in dag.get_task("silver.orders").doc_md
    assert dag.get_task("gold.revenue_daily").upstream_task_ids == {"silver.orders_gate"}
    file = write_spec(tables, "bronze/shop/orders.yaml", "table: bronze.orders\nsource: {landings: orders}\n")
    dag = build_domain_dag("shop", schedule="0 0 * * *", start_date=START, owner="platform")
    assert dag.get_task("bronze.orders").upstream_task_ids == {"bronze.orders.files"}
    assert f"{file}:" in dag.get_task("bronze.orders.files").doc_md


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(1, 3), st.integers(1, 3))
def test_whatever_some_specs_say_every_dag_is_built_and_every_table_keeps_its_tasks(
    random: random.Random, files: int, changes: int
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAKEHOUSE_TABLES", folder)
        write_mutated(Path(folder), random, files, changes)
        flights = build_domain_dag("flights", schedule="0 0 * * *", start_date=START, owner="platform")
        for place in SPECS:
            layer, _, file = place.split("/")
            assert {f"{layer}.{Path(file).stem}", f"{layer}.{Path(file).stem}_gate"} <= set(flights.task_ids)
        kept = load_catalog(Path(folder)).specs
        assert kept
        build_gate_override_dag(owner="platform")
        build_maintenance_dag(schedule="0 3 * * *", start_date=START, owner="platform")


def test_maintenance_has_the_form_the_bound_and_the_owner_that_its_file_states() -> None:
    bound = {"vacuum_dry_run": True, "most_bytes": 5, "most_time": timedelta(hours=1)}
    dag = build_maintenance_dag(schedule="0 3 * * *", start_date=START, owner="platform", **bound)  # type: ignore[arg-type]
    assert dag.params["vacuum_dry_run"] is True
    plan = dag.get_task("plan")
    assert isinstance(plan, MaintenancePlanOperator)
    assert plan.most_bytes == 5
    assert dag.get_task("maintain").partial_kwargs["most_time"] == timedelta(hours=1)
    assert dag.owner == "platform", "Airflow shows the owners of all tasks as those of the DAG, in any order"


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(("names", "asked"), [((), None), (("ann",), [{"id": "ann", "name": "ann"}])])
def test_who_may_let_a_version_pass_can_be_limited(names: tuple[str, ...], asked: list[dict[str, str]] | None) -> None:
    dag = build_gate_override_dag(owner="platform", approvers=names)
    assert dag.get_task("approve").assigned_users == asked
    assert dag.is_paused_upon_creation is False, "a run of a paused DAG would wait without a word"


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


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the specs of one bronze, one silver and one gold table of the domain `shop`."""
    folder = tmp_path / "tables"
    monkeypatch.setenv("LAKEHOUSE_TABLES", str(folder))
    return write_specs(folder, bronze_document(), silver_document(owner="sales"), gold_document())
