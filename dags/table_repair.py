"""Restores a version of a table, or deletes or replaces rows, if a person approves; the form says what, and why."""

from lakehouse_airflow.factory import build_table_repair_dag

dag = build_table_repair_dag(owner="platform")
