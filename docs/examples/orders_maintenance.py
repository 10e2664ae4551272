"""Joins the small files of the orders every Sunday, then deletes old files."""

from datetime import UTC, datetime

from airflow.sdk import DAG, CronDataIntervalTimetable

from lakehouse_airflow.operators.table_maintenance import TableMaintenanceOperator
from millrace.contracts.job.args import Job

ORDERS = "bronze.orders"

with DAG(
    dag_id="orders_maintenance",
    schedule=CronDataIntervalTimetable("0 3 * * 0", timezone="UTC"),
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    max_active_runs=1,
    default_args={"owner": "sales", "pool": "spark"},
) as dag:
    optimize = TableMaintenanceOperator(task_id="optimize", job=Job.TABLE_OPTIMIZE, table=ORDERS)
    vacuum = TableMaintenanceOperator(task_id="vacuum", job=Job.TABLE_VACUUM, table=ORDERS, is_dry_run=False)
    optimize >> vacuum
