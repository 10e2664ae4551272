"""What the pages of the web UI cost.

The series `pages` starts these modules in a process of their own, with a private Airflow.
"""
