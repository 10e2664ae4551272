"""Maintains the tables of all domains daily at a quiet hour."""

from datetime import UTC, datetime

from lakehouse_airflow.factory import build_maintenance_dag

dag = build_maintenance_dag(
    schedule="0 3 * * *",
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    owner="platform",
)
