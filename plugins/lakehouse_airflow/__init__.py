"""Millrace in Airflow: operators, their hook, the interval helper, the retry policy and the DAG factory."""
