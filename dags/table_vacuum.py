"""Deletes what a table keeps for a short time only, if a person approves; the form says of which table, and why."""

from lakehouse_airflow.factory import build_table_vacuum_dag

dag = build_table_vacuum_dag(owner="platform")
