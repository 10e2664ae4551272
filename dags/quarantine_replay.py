"""Replays quarantined rows from the UI; the form says which rows, and how to fix them."""

from lakehouse_airflow.factory import build_quarantine_replay_dag

dag = build_quarantine_replay_dag(owner="platform")
