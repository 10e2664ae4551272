"""The DAG file that `lakehouse init` writes: Airflow parses it, and it has a task for each table."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from include.cli.app import app
from tests.support.airflow.dag_parse import parse_dags


def test_the_dag_file_of_a_new_domain_is_parsed(tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    for source in ("orders", "lines"):
        (landing / source / "date=2013-01-02").mkdir(parents=True)
        (landing / source / "date=2013-01-02/a.csv").write_text("id,amount\n1,2\n2,3\n")
    (tmp_path / "tables").mkdir()
    places = {f"LAKEHOUSE_{name.upper()}": str(tmp_path / name) for name in ("root", "landing", "tables")}
    answer = CliRunner().invoke(app, ["init", "shop", str(landing), "--dags", str(tmp_path / "dags")], env=places)
    assert answer.exit_code == 0, answer.output
    parsed = parse_dags(tmp_path / "airflow", tmp_path / "dags", **places)
    assert (parsed["errors"], parsed["heavy"], parsed["outside"]) == ({}, [], [])
    assert list(parsed["dags"]) == ["shop"]
    dag = parsed["dags"]["shop"]["dag"]
    tasks = {task["__var"]["task_id"] for task in dag["tasks"]}
    assert {f"{layer}.{source}" for layer in ("bronze", "silver") for source in ("orders", "lines")} <= tasks
    assert {"bronze.orders.files", "silver.orders_gate"} <= tasks
    assert dag["start_date"] == 1357084800.0, "the first day that was delivered"
