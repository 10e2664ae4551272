"""A real Airflow as processes of this machine, and a client of its REST API.

What Millrace adds to Airflow is in `plugins`.
"""
