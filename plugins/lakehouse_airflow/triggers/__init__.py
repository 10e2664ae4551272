"""What runs in Airflow's triggerer: waits that take no worker.

Triggers only look. A worker decides what the end of a wait means.
"""
