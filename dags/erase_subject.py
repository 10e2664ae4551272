"""Erases people from all tables, if a person approves; the form says for which request, and where their keys are."""

from lakehouse_airflow.factory import build_subject_erasure_dag

dag = build_subject_erasure_dag(owner="platform")
