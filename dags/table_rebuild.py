"""Rebuilds a table, if a person approves; the form says which, and why."""

from lakehouse_airflow.factory import build_table_rebuild_dag

dag = build_table_rebuild_dag(owner="platform")
