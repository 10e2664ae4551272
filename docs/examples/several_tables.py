"""Writes and checks each table of a list in a mapped task group."""

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, CronDataIntervalTimetable, task_group

from lakehouse_airflow.assets import table_asset
from lakehouse_airflow.factory.defaults import run_form
from lakehouse_airflow.operators.quality_gate import QualityGateOperator
from lakehouse_airflow.operators.table_write import TableWriteOperator
from lakehouse_airflow.retries import Backoff, TypedRetryPolicy

TABLES = ["bronze.orders", "bronze.returns"]
QUICK = TypedRetryPolicy(conflict=Backoff(timedelta(seconds=2), factor=3, longest=timedelta(minutes=1), retries=6))

with DAG(
    dag_id="several_tables",
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    params=run_form(),
    default_args={"owner": "sales", "pool": "spark", "retries": 8, "retry_policy": QUICK},
) as dag:

    @task_group
    def load(table: str) -> None:
        """Write a table, then check it."""
        write = TableWriteOperator(task_id="write", table=table)
        gate = QualityGateOperator(task_id="gate", table=table, outlets=[table_asset(name) for name in TABLES])
        write >> gate

    load.expand(table=TABLES)
