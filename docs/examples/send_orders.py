"""Runs once for each day of a table."""

from typing import Any

from airflow.sdk import DAG, PartitionedAssetTimetable, StartOfDayMapper, task

from lakehouse_airflow.assets import interval_asset

days = PartitionedAssetTimetable(assets=interval_asset("bronze.orders"), default_partition_mapper=StartOfDayMapper())

with DAG("send_orders", schedule=days) as dag:

    @task
    def send(dag_run: Any) -> str:
        """Stand for what is done with the rows of the day."""
        return f"the orders of {dag_run.partition_key}"

    send()
