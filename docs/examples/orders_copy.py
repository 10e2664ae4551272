"""Copies the shop's orders as soon as they are delivered, beside loading them."""

from datetime import UTC, datetime

from airflow.sdk import DAG, CronDataIntervalTimetable, task

from lakehouse_airflow.factory.defaults import run_form
from lakehouse_airflow.sensors.landing import LandingSensor

with DAG(
    dag_id="orders_copy",
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    params=run_form(),
    default_args={"owner": "sales"},
) as dag:

    @task
    def copy() -> str:
        """Stand for what you do with the files."""
        return "copied"

    LandingSensor(task_id="files", table="bronze.orders", soft_fail=True) >> copy()
