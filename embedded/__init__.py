"""The local stack: its jars, and PostgreSQL, a Spark Connect server and Airflow as processes of this machine."""
