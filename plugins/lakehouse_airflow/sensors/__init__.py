"""Tasks that only wait.

They write no table: `lakehouse_airflow.operators` has the tasks that do.
"""
