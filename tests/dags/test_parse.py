"""DAG files as Airflow parses them: quickly, quietly, and whatever a spec says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from typer.testing import CliRunner

from embedded.clone import CLONE
from millrace.cli.app import app
from millrace.overview.attention import Trouble
from tests.support.airflow.airflow_home import copy_dags
from tests.support.airflow.dag_parse import parse_dags
from tests.support.documents.specs import bronze_document, gold_document, silver_document, write_specs

DOMAIN = """
from datetime import UTC, datetime
from lakehouse_airflow.factory import build_domain_dag
dag = build_domain_dag("{0}", schedule="0 0 * * *", start_date=datetime(2013, 1, 1, tzinfo=UTC), owner="{0}")
"""
CHAINS, BUDGET_MS = 334, 4.0
GUIDE = (CLONE / "docs" / "guides" / "alerts.md").read_text()


@pytest.fixture(scope="module")
def parse(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], dict[str, Any]]:
    """Parse a DAG of a thousand tables, the DAG of the guide of alerts, and the one that `lakehouse init` writes."""
    folder = tmp_path_factory.mktemp("parsed")
    tables, dags, landing = (folder / name for name in ("tables", "dags", "landing"))
    for source in ("orders", "lines"):
        (landing / source / "date=2013-01-02").mkdir(parents=True)
        (landing / source / "date=2013-01-02/a.csv").write_text("id,amount\n1,2\n2,3\n")
    tables.mkdir()
    places = {f"LAKEHOUSE_{name.upper()}": str(folder / name) for name in ("root", "landing", "tables")}
    answer = CliRunner().invoke(app, ["init", "shop", str(landing), "--dags", str(dags)], env=places)
    assert answer.exit_code == 0, answer.output
    [example] = re.findall(r"^```python\n(.*?)^```$", GUIDE, flags=re.MULTILINE | re.DOTALL)
    (dags / "alerts.py").write_text(example)
    (dags / "thousand.py").write_text(DOMAIN.format("thousand"))
    write_chains(tables)
    return lambda: parse_dags(folder / "airflow", dags, **places)


def write_chains(tables: Path) -> None:
    total = {"expect_table_row_count_to_be_between": {"min_value": 1}, "action": "fail", "reason": "no empty days"}
    key = {"expect_column_values_to_not_be_null": {"column": "order_id"}, "action": "quarantine", "reason": "a key"}
    for number in range(CHAINS):
        name = f"orders_{number:04}"
        write_specs(
            tables,
            bronze_document(f"bronze.{name}", expectations=[total]),
            silver_document(f"silver.{name}", source=f"bronze.{name}", owner="sales", expectations=[key, total]),
            gold_document(f"gold.{name}", sources={"o": {"table": f"silver.{name}"}}),
            domain="thousand",
        )


def test_a_thousand_tables_parse_within_four_ms_cpu_a_table_and_quietly(parse: Callable[[], dict[str, Any]]) -> None:
    """CPU time of one parse, what the files import included; the best of three, since other programs run too."""
    spent = list[float]()
    while not spent or spent[-1] > BUDGET_MS:
        assert len(spent) < 3, f"ms CPU a table: {spent}"
        parsed = parse()
        spent.append(1000 * parsed["cpu_s"] / (3 * CHAINS))
    assert (parsed["errors"], parsed["heavy"], parsed["outside"]) == ({}, [], [])
    assert list(parsed["dags"]) == ["lakehouse_alerts", "shop", "thousand"]
    assert len(parsed["dags"]["thousand"]["dag"]["tasks"]) == 7 * CHAINS
    shop = parsed["dags"]["shop"]["dag"]
    tasks = {task["__var"]["task_id"] for task in shop["tasks"]}
    written = {f"{layer}.{source}" for layer in ("bronze", "silver") for source in ("orders", "lines")}
    assert written | {"bronze.orders.files", "silver.orders_gate"} <= tasks
    assert shop["start_date"] == 1357084800.0, "the first day that was delivered"


def test_one_wrong_spec_is_an_import_error_of_no_dag_and_every_table_keeps_its_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dags, tables = copy_dags(tmp_path / "dags", "flights.py"), tmp_path / "tables"
    for domain in ("shop", "finance"):
        (dags / f"{domain}.py").write_text(DOMAIN.format(domain))
    write_specs(tables, bronze_document(), bronze_document("bronze.returns"), silver_document())
    write_specs(tables, bronze_document("bronze.bills"), gold_document(), domain="finance")
    monkeypatch.setenv("LAKEHOUSE_TABLES", str(tables))
    before, errors = tasks_and_errors(dags)
    assert errors == {}
    assert set(before) > {"shop", "finance", "table_maintenance", "gate_override", "quarantine_replay"}
    assert {"silver.orders", "silver.orders_gate"} < before["shop"]

    write_specs(tables, silver_document(keyz=["order_id"]))
    after, errors = tasks_and_errors(dags)
    assert after == before
    [[file, error]] = errors.items()
    assert Path(file).name == "table_specs.py"
    assert "silver/shop/orders.yaml:" in error
    assert "keyz" in error


def tasks_and_errors(dags: Path) -> tuple[dict[str, set[str]], dict[str, str]]:
    """Return DAG id -> its tasks, and file -> its import error."""
    bag = DagBag(dag_folder=str(dags), bundle_path=dags, bundle_name="specs")
    return {dag_id: set(dag.task_ids) for dag_id, dag in bag.dags.items()}, bag.import_errors


def test_the_guide_of_alerts_names_every_kind_of_cause_but_those_that_airflow_or_a_page_alone_tells() -> None:
    assert [kind for kind in Trouble if f"- `{kind.value}`: " not in GUIDE] == [Trouble.FAILED, Trouble.MISFIT]
