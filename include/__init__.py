"""The language of all sides, the control plane and the command line, in plain Python.

Neither Airflow nor Spark is imported here.
"""
