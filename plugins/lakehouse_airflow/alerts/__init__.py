"""Alerts through Airflow's notifiers: the task of the DAG of alerts, and the callback of a refused gate.

What is told, in which words, and what was told before belongs to `millrace.alerts`, which knows no Airflow.
"""
