"""The local stack: jars, PostgreSQL, a Spark Connect server and Airflow as processes of this machine.

A cluster installation does not use this package.
"""
