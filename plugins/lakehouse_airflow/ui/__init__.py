"""The pages that Millrace adds to Airflow's web server.

They read the results of runs; they start nothing.
"""
