"""Asks in the UI whether new fields become columns, for the bronze tables whose specs say `evolve: ask`."""

from lakehouse_airflow.factory import build_column_approvals_dag

dag = build_column_approvals_dag(owner="platform")
