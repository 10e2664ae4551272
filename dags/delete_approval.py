"""Allows many deleted keys of a table, if a person approves; the form says which, and why."""

from lakehouse_airflow.factory import build_delete_approval_dag

dag = build_delete_approval_dag(owner="platform")
