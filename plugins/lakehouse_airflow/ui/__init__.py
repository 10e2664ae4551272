"""The pages that Millrace adds to Airflow's web server.

They read what runs have left; they start nothing.
"""
