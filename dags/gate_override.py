"""Lets a refused version of a table pass, if a person approves; the form says which, and why."""

from lakehouse_airflow.factory import build_gate_override_dag

dag = build_gate_override_dag(owner="platform")
