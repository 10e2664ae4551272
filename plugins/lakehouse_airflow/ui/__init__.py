"""What Millrace adds to Airflow's web server: the pages behind its links."""
