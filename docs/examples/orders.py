"""Writes and checks the shop's orders every day."""

from datetime import UTC, datetime

from airflow.sdk import DAG, CronDataIntervalTimetable

from lakehouse_airflow.assets import table_asset
from lakehouse_airflow.factory.defaults import run_form
from lakehouse_airflow.operators.quality_gate import QualityGateOperator
from lakehouse_airflow.operators.table_write import TableWriteOperator

ORDERS = "bronze.orders"

with DAG(
    dag_id="orders",
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    params=run_form(),
    default_args={"owner": "sales", "pool": "spark"},
) as dag:
    write = TableWriteOperator(task_id="write", table=ORDERS, max_active_tis_per_dag=1)
    gate = QualityGateOperator(task_id="gate", table=ORDERS, outlets=[table_asset(ORDERS)])
    write >> gate
