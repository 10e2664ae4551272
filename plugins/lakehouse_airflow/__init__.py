"""Millrace in Airflow: operators, their hook, intervals, the retry policy and the DAG factory.

Spark is never imported here: each job runs in its own process.
"""
