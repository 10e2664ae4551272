"""Restores an earlier version of a table, if a person approves; the form says which, and why."""

from lakehouse_airflow.factory import build_table_repair_dag

dag = build_table_repair_dag(owner="platform")
