"""Lets a refused version of a table pass, where a person approves it: which one, and why, says the form."""

from lakehouse_airflow.factory import build_gate_override_dag

dag = build_gate_override_dag(owner="platform")
