"""Replays quarantined rows from the UI: which ones, and what is mended in them, says the form."""

from lakehouse_airflow.factory import build_quarantine_replay_dag

dag = build_quarantine_replay_dag(owner="platform")
