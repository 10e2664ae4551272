"""Builds a table anew where a person approves it: which one, and why, says the form."""

from lakehouse_airflow.factory import build_table_rebuild_dag

dag = build_table_rebuild_dag(owner="platform")
