"""The form of the quarantine: read it, and carry out what needs no Spark.

The replay, which needs Spark, is `lakehouse_airflow.operators.quarantine_replay`.
"""
