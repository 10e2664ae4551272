"""Millrace in Airflow: operators, their hook, intervals, the retry policy and the DAG factory.

Spark is never imported here: a job is a process of its own.
"""
