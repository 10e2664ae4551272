"""Lets many keys of a table be deleted, where a person approves it: which ones, and why, says the form."""

from lakehouse_airflow.factory import build_delete_approval_dag

dag = build_delete_approval_dag(owner="platform")
